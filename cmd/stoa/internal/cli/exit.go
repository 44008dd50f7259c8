package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/display"
	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/store/remote"
)

// The exit statuses.
const (
	StatusFine   = 0
	StatusCannot = 1
	StatusUse    = 2
	StatusDamage = 3
	// StatusStopped is that of a program which Ctrl-C or SIGTERM ended, as shells have it for SIGINT.
	StatusStopped = 130
)

// ErrDamage ends a verb with status 3 after everything has been reported.
var ErrDamage = errors.New("damage")

// ErrUse ends a verb with status 2 after everything has been reported.
var ErrUse = errors.New("use")

// ErrFailed ends a verb with status 1 after everything has been reported.
var ErrFailed = errors.New("failed")

// ErrStopped ends a verb with status 130 after the interruption has been reported.
var ErrStopped = errors.New("stopped")

// ErrSaid is what errors are whose message says what there is to do: no hint follows.
var ErrSaid = errors.New("the message says what to do")

// ErrRefused is ErrFailed for what the operating system or a store does not allow to be read. It outranks damage: what
// was not read may be intact.
var ErrRefused error = &cutError{ErrFailed}

// Worse returns the error that ends a verb which goes on after an error, when err follows the worst until then.
func Worse(worst, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), worst == ErrRefused:
		return ErrRefused
	case Status(err) == StatusDamage:
		return ErrDamage
	case worst == nil:
		return ErrFailed
	}
	return worst
}

// UseError is wrong use of the command line. Hint may be empty.
type UseError struct{ Message, Hint string }

func (e *UseError) Error() string { return e.Message }

// cutError ends a verb whose output is incomplete with status 1, even if damage was the reason: for plan and scan,
// status 3 means that the output is complete and the table is not.
type cutError struct{ error }

func (e *cutError) Unwrap() error { return e.error }

// Whole returns err for a verb that must write everything: damage that stopped it means that its output is incomplete.
func Whole(err error) error {
	if errors.Is(err, fault.Corrupt) && !errors.Is(err, ErrDamage) {
		return &cutError{err}
	}
	return err
}

// WrongUse returns a *UseError: the command line is wrong, exit status 2.
func WrongUse(format string, args ...any) error {
	return &UseError{Message: fmt.Sprintf(format, args...)}
}

// Status returns the exit status for an error.
func Status(err error) int {
	var use *UseError
	var cut *cutError
	switch {
	case err == nil:
		return StatusFine
	case errors.Is(err, ErrStopped):
		return StatusStopped
	case errors.As(err, &cut), errors.Is(err, store.ErrChanged): // repeating the command would give another answer
		return StatusCannot
	case errors.Is(err, ErrDamage), errors.Is(err, fault.Corrupt):
		return StatusDamage
	case errors.As(err, &use), errors.Is(err, ErrUse), errors.Is(err, fault.Invalid):
		return StatusUse
	case errors.Is(err, ErrEnough): // and no worse error
		return StatusFine
	}
	return StatusCannot
}

// End finishes a run: it flushes the output, prints an error, and returns the exit status.
func (a *App) End(ctx context.Context, cmd *cobra.Command, err error) int {
	a.EndWork()
	if flushed := a.Stdout.Flush(); err == nil {
		err = flushed
	} else if errors.Is(err, ErrDamage) && flushed != nil && !errors.Is(flushed, ErrEnough) {
		err = &cutError{flushed}
	}
	if paged := a.EndPager(); err == nil || errors.Is(err, ErrEnough) {
		err = cmp.Or(paged, err)
	}
	for _, s := range a.streams {
		s.remove()
	}
	if s := Status(err); s == StatusFine || s == StatusDamage || s == StatusUse {
		if failed := a.RemoteFailure(); failed != nil { // its absence is not the damage that was reported
			err = &cutError{failed}
		}
	}
	if a.remote != nil {
		a.remote.CloseCache()
	}
	a.reportUsage()
	if err != nil && ctx.Err() != nil && (errors.Is(err, context.Canceled) || store.Stopped(err)) {
		a.ReportError(cmd, errors.New("interrupted"))
		err = ErrStopped
	}
	a.ReportError(cmd, err)
	return Status(err)
}

// ReportError prints an error on one line, followed by a hint if there is one.
func (a *App) ReportError(cmd *cobra.Command, err error) {
	if err == nil || errors.Is(err, ErrDamage) || errors.Is(err, ErrEnough) || errors.Is(err, ErrFailed) ||
		errors.Is(err, ErrUse) || errors.Is(err, ErrStopped) {
		return
	}
	a.print(display.Hanging("stoa: "+display.Printable(InFlags(Line(err))), a.ErrWidth))
	if h := hint(cmd, err); h != "" && !a.Quiet {
		a.print(display.Hanging("  "+withSlashes(h), a.ErrWidth))
	}
}

// Line returns an error as it is reported. Joined errors are on one line; a predicate keeps the mark below it, which
// needs lines of its own.
func Line(err error) string {
	switch e := err.(type) {
	case *OpenError:
		return Line(e.Err)
	case *stoa.OpenError:
		return Line(e.Err)
	case *cutError:
		return Line(e.error)
	case *fault.Error: // if it is about a whole file, its place is just the name
		if e.At != (fault.Span{}) && e.At.Off == 0 && e.At.Len == 0 {
			return strings.Replace(e.Error(), e.At.String(), e.At.Object, 1)
		}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var parts []string
		for _, e := range joined.Unwrap() {
			if l := Line(e); !slices.Contains(parts, l) { // Abort often fails with the error that led to it
				parts = append(parts, l)
			}
		}
		return strings.Join(parts, "; ")
	}
	if p := new(fs.PathError); errors.As(err, &p) && p.Op == "write" { // whatever was being written
		return p.Error()
	}
	if p, ok := err.(*fs.PathError); ok && (p.Op == "stat" || p.Op == "open" || p.Op == "lstat") {
		return fmt.Sprintf("%s: %v", p.Path, p.Err)
	}
	return err.Error()
}

// flagNames replaces names of limits, options and functions in the library's messages by the flags for them.
var flagNames = strings.NewReplacer(
	"the page limit", "--max-page", "page limit", "--max-page",
	"the metadata limit", "--max-metadata", "metadata limit", "--max-metadata",
	"the field limit", "--max-fields", "field limit", "--max-fields",
	"request limit", "--max-requests",
	"the depth limit", "--max-depth", "depth limit", "--max-depth",
	"the memory limit", "--memory", "memory limit", "--memory",
	"writing option ", "--opt ",
	"Changer.DisableDependents", "--disable-dependents",
	"TableSpec.SortColumns", "--sort-columns", "TableSpec.Inverted", "--inverted-index",
	"TableSpec.LongStrings", "--long-strings", "TableSpec.Buckets", "--bucket", "TableSpec.BucketBy", "--bucket",
	"--source-opt unclaimed=true", "--source-opt unclaimed=true", "unclaimed=true", "--source-opt unclaimed=true",
	"an unordered scan reads", "--unordered reads", "the format can be forced", "--from FORMAT forces one",
)

// InFlags replaces limits, choices and reading options in a library message by the flags that set them: "(page limit)"
// by "(--max-page)", " live=true" by " --live".
func InFlags(s string) string {
	s = withSlashes(flagNames.Replace(s))
	for _, w := range NewOptionFlags() {
		if w.Value != "" {
			s = strings.ReplaceAll(s, " "+w.Key+"="+w.Value, " --"+w.Flag)
		}
		if _, rest, ok := strings.Cut(w.Usage, "`"); ok && w.Value == "" {
			name, _, _ := strings.Cut(rest, "`")
			s = strings.ReplaceAll(s, "option "+w.Key+"="+name, "--"+w.Flag+" "+name)
		}
	}
	return s
}

// readingOption returns a reading option that an error names, as KEY=VALUE; "": it names none that has one value.
func readingOption(err error) string {
	for _, w := range NewOptionFlags() {
		if option := w.Key + "=" + w.Value; w.Value != "" && strings.Contains(err.Error(), " "+option) {
			return option
		}
	}
	return ""
}

// hint returns advice about an error, or "".
func hint(cmd *cobra.Command, err error) string {
	var use *UseError
	opening := errors.As(err, new(*OpenError)) || errors.As(err, new(*stoa.OpenError))
	switch {
	case errors.As(err, &use) && use.Hint != "":
		return use.Hint
	case errors.As(err, &use) && cmd != nil && cmd.HasParent():
		return "stoa " + cmd.Name() + " --help says more"
	case cmd != nil && cmd.Name() == "sql" && readingOption(err) != "":
		return "in SQL: stoa(ADDRESS, options := '" + readingOption(err) + "')"
	case errors.Is(err, format.ErrElsewhere), errors.Is(err, ErrSaid):
		return ""
	case strings.Contains(err.Error(), "option schema=FILE") && cmd != nil && len(cmd.Flags().Args()) > 0:
		place := sourceOf(cmd.Flags().Args(), err)
		if text := err.Error(); strings.Contains(text, "from the blocks: option schema") ||
			strings.Contains(text, "option schema=FILE reads") { // of Kudu: only what no superblock names
			return BySchema(place)
		}
		return "stoa recover " + display.ShellWord(WithoutTable(place)) + " --schema FILE -o OUT.parquet"
	case errors.Is(err, store.ErrChanged) && cmd != nil && cmd.Name() == "scan":
		return "stoa plan makes new splits; what is to be read must stay as it is until the last of them is"
	case errors.Is(err, store.ErrChanged):
		return "read it again when nothing writes to it"
	case errors.Is(err, fault.Corrupt) && opening && cmd != nil && cmd.Name() == "recover" &&
		!strings.Contains(err.Error(), ": pass ") && !strings.Contains(err.Error(), ", pass "):
		return "stoa verify lists the damage"
	case errors.Is(err, fault.Corrupt) && opening && cmd != nil && cmd.Name() == "recover": // the message names options
		return "--source-opt passes one, as in --source-opt type=int32; stoa formats NAME explains all of a format"
	case errors.Is(err, fault.Corrupt) && opening:
		return "stoa recover may still read it; stoa verify says more"
	case errors.Is(err, fault.Corrupt) && cmd != nil && cmd.Flag("damaged") != nil &&
		cmd.Flag("damaged").Value.String() != "fail":
		return "stoa verify says more"
	case errors.Is(err, fault.Corrupt) && cmd != nil && cmd.Flag("damaged") != nil:
		return "--damaged skip-rows (or null-cells) reads around it; stoa verify says more"
	case errors.Is(err, remote.ErrIgnoresConditions):
		return "if nobody else writes there: --assume-single-writer"
	case errors.Is(err, fs.ErrNotExist):
		return missingHint(err)
	case errors.Is(err, fault.Invalid) && strings.Contains(err.Error(), "there is no option"):
		return "stoa formats NAME lists a format's options"
	case errors.Is(err, fault.Invalid) && strings.Contains(err.Error(), "use --to"):
		return "stoa formats lists the formats and their extensions"
	case cmd != nil && cmd.Flag("each") != nil && strings.Contains(err.Error(), "they are not one table"):
		return "--each takes every table of every PATH on its own"
	case errors.Is(err, fault.Bug):
		return "this is a bug in stoa; please report it, with the file if you can"
	}
	return ""
}

// BySchema is the hint for blocks whose table is lost: the command that reads those in a place by a schema.
func BySchema(place string) string {
	return "stoa recover " + display.ShellWord(WithoutTable(place)) + " --schema FILE -o OUT.parquet reads the blocks" +
		" that no table has"
}

// sourceOf returns the argument that an error is about, or the first.
func sourceOf(args []string, err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		for _, arg := range args {
			if strings.HasPrefix(e.At.Object, WithoutTable(arg)) {
				return arg
			}
		}
	}
	return args[0]
}

// missingHint returns the next step when a file is missing: to create the directory of an output, or to list what
// exists.
func missingHint(err error) string {
	var p *fs.PathError
	if !errors.As(err, &p) || p.Path == "" {
		return ""
	}
	if strings.Contains(p.Path, "://") {
		return ""
	}
	if _, err := strconv.Atoi(p.Path); err == nil && p.Op != "create" {
		return "for so many rows: -n " + p.Path
	}
	dir := filepath.Dir(p.Path)
	for dir != filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			break
		}
		dir = filepath.Dir(dir)
	}
	if p.Op == "create" {
		return "its directory is not there; mkdir -p " + filepath.Dir(p.Path) + " makes it"
	}
	return "stoa ls " + dir + " lists what is there"
}

// OpenError is the error of a source that could not be opened.
type OpenError struct{ Err error }

func (e *OpenError) Error() string { return e.Err.Error() }

func (e *OpenError) Unwrap() error { return e.Err }

// MissingError ends get after the rows that were found have been printed.
type MissingError struct{ Err error }

func (e *MissingError) Error() string { return e.Err.Error() }

func (e *MissingError) Unwrap() error { return e.Err }
