package fault

import (
	"errors"
	"strings"
)

// What is damage and what is not is decided here, and asked for everywhere: what a budget refuses may be whole, so no
// verb calls it damaged, no policy leaves it out, and no repair is tried on it (docs/architecture.md, law 3).

// OverBudget reports whether err says that something takes more than a budget allows. Readers that go on after damage
// stop at this.
func OverBudget(err error) bool { return errors.Is(err, Limit) }

// NotDamage is the class of an error that does not say whether the bytes are damaged: what was asked for takes more
// than a budget allows (Limit), or cannot be (Invalid). 0: everything else.
func NotDamage(err error) Class {
	var e *Error
	if errors.As(err, &e) && (e.Class == Limit || e.Class == Invalid) {
		return e.Class
	}
	return 0
}

// OfRows is what a writer says of rows that it was given from a table, and cannot hold. Which values there are is
// nobody's wrong use: what is Invalid to the writer's caller is Unsupported to who named the table.
func OfRows(err error) error {
	if !errors.Is(err, Invalid) {
		return err
	}
	return Unsupportedf(Span{}, "", "%s", strings.TrimPrefix(err.Error(), Invalid.Error()+": "))
}

// NotOfFile reports whether err is about no byte of a file: the system did not give it, or a budget does not allow it.
func NotOfFile(err error) bool { return !errors.As(err, new(*Error)) || OverBudget(err) }
