package fault

import (
	"errors"
	"strings"
)

// What counts as damage is decided here for the whole tree. Data that exceeds a budget may be intact, so no verb calls
// it damaged, no policy leaves it out, and no repair is tried on it (docs/architecture.md, law 3).

// OverBudget reports whether err says that something exceeds a budget. Readers that continue after damage stop at such
// an error.
func OverBudget(err error) bool { return errors.Is(err, Limit) }

// NotDamage returns the class of an error that does not tell whether the bytes are damaged: the request exceeds a
// budget (Limit) or is impossible (Invalid). It returns 0 for every other error.
func NotDamage(err error) Class {
	var e *Error
	if errors.As(err, &e) && (e.Class == Limit || e.Class == Invalid) {
		return e.Class
	}
	return 0
}

// OfRows converts the error of a writer that cannot hold rows of a table. The user who named the table did not choose
// its values, so an error that is Invalid to the writer's caller is Unsupported to the user.
func OfRows(err error) error {
	if !errors.Is(err, Invalid) {
		return err
	}
	return Unsupportedf(Span{}, "", "%s", strings.TrimPrefix(err.Error(), Invalid.Error()+": "))
}

// NotOfFile reports whether err is not about bytes of a file: the operating system failed, or a budget was exceeded.
func NotOfFile(err error) bool { return !errors.As(err, new(*Error)) || OverBudget(err) }
