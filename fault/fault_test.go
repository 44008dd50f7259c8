package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"stoa/fault"
)

func TestErrorIsOneLineInAFixedOrder(t *testing.T) {
	at := fault.Span{Object: "t/f7.cfile", Off: 40110, Len: 8}
	for want, err := range map[string]error{
		"t/f7.cfile[40110+8]: corrupt: posidx/leaf[3]/entry[12].offset: 918273 is past the end of the file " +
			"(500000)": fault.Corruptf(at, "posidx/leaf[3]/entry[12].offset", "%d is past the end of the file (%d)",
			918273, 500000),
		"x.orc: unsupported: this is an ORC file": fault.Unsupportedf(fault.Span{Object: "x.orc"}, "",
			"this is an ORC file"),
		"invalid: no column x": fault.Invalidf("no column x"),
		"f[0+4]: limit: magic: too much: EOF": &fault.Error{Class: fault.Limit,
			At: fault.Span{Object: "f", Len: 4}, Path: "magic", Reason: "too much", Cause: io.EOF},
		"bug: oops": fault.Bugf("oops"),
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestClassesAreAsked(t *testing.T) {
	err := fmt.Errorf("while reading: %w", &fault.Error{Class: fault.Corrupt, Cause: io.ErrUnexpectedEOF})
	if !errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Limit) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

func TestLocate(t *testing.T) {
	at := fault.Span{Object: "f", Off: 100, Len: 50}
	rel := fault.Rel(7, 2, "entry[1]", "is wrong")
	for want, err := range map[string]error{
		"f[107+2]: corrupt: block[3]/entry[1]: is wrong": fault.Locate(rel, at, true,
			"block[3]"),
		"f[100+50]: corrupt: block[3]/entry[1]: is wrong (byte 7 of the decoded block)": fault.Locate(rel, at,
			false, "block[3]"),
		"f[107+2]: corrupt: posidx/block[3]/entry[1]: is wrong": fault.Locate(
			fault.Locate(rel, at, true, "block[3]"), fault.Span{Object: "g"}, true, "posidx"),
		"f[100+50]: corrupt: block[3]: EOF": fault.Locate(io.EOF, at,
			true, "block[3]"),
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if fault.Locate(nil, at, true, "x") != nil {
		t.Error("no error was located")
	}
	if rel.At != (fault.Span{Off: 7, Len: 2}) {
		t.Error("Locate changed the error it was given")
	}
}

func TestJoinPath(t *testing.T) {
	for _, c := range [][3]string{{"a", "b", "a/b"}, {"", "b", "b"}, {"a", "", "a"}, {"a", ".b", "a.b"},
		{"a", "[1]", "a[1]"}} {
		if got := fault.JoinPath(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q are %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// TestWhatIsNoDamage: exceeded budgets and wrong usage are not damage, however they are wrapped; and errors of the
// system are not damage of the file.
func TestWhatIsNoDamage(t *testing.T) {
	limit := fmt.Errorf("t: %w", fault.Limitf(fault.Span{}, "", "too much"))
	for _, c := range []struct {
		err         error
		class       fault.Class
		over, other bool
	}{
		{limit, fault.Limit, true, true},
		{fault.Invalidf("no column"), fault.Invalid, false, false},
		{fault.Corruptf(fault.Span{}, "", "bad"), 0, false, false},
		{fault.Unsupportedf(fault.Span{}, "", "unknown"), 0, false, false},
		{io.ErrUnexpectedEOF, 0, false, true},
	} {
		if fault.NotDamage(c.err) != c.class || fault.OverBudget(c.err) != c.over || fault.NotOfFile(c.err) != c.other {
			t.Errorf("%v: class %v, over budget %t, none of the file's %t", c.err, fault.NotDamage(c.err),
				fault.OverBudget(c.err), fault.NotOfFile(c.err))
		}
	}
}
