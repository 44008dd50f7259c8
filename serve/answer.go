package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"stoa/fault"
)

// errorDoc is the body of an answer that is an error.
type errorDoc struct {
	Error  string `json:"error"`
	Class  string `json:"class"`            // refused, invalid, missing, corrupt, unsupported, limit, bug, failed
	Object string `json:"object,omitempty"` // the place of damage
	Offset int64  `json:"offset,omitempty"`
	Length int64  `json:"length,omitempty"`
	At     *int   `json:"at,omitempty"` // the byte of a predicate that is wrong
}

// asked is an error in a request's parameters.
func asked(format string, args ...any) error { return fault.Invalidf(format, args...) }

var errBusy = errors.New("too many requests at a time; ask again")

func writeJSON(w http.ResponseWriter, status int, doc any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		status = http.StatusInternalServerError
		b.Reset()
		fmt.Fprintf(&b, "{\"error\":%q,\"class\":\"bug\"}\n", err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}

func writeError(w http.ResponseWriter, err error) {
	status, doc := errorOf(err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, doc)
}

// errorOf returns the status and the body for an error.
func errorOf(err error) (int, errorDoc) {
	d := errorDoc{Error: err.Error(), Class: "failed"}
	var e *fault.Error
	if errors.As(err, &e) {
		d.Object, d.Offset, d.Length = e.At.Object, e.At.Off, e.At.Len
	}
	switch {
	case errors.Is(err, errBusy):
		d.Class = "limit"
		return http.StatusServiceUnavailable, d
	case errors.Is(err, fs.ErrNotExist):
		d.Class = "missing"
		return http.StatusNotFound, d
	case errors.Is(err, fault.Corrupt):
		d.Class = "corrupt"
	case errors.Is(err, fault.Unsupported):
		d.Class = "unsupported"
	case errors.Is(err, fault.Invalid):
		d.Class = "invalid"
		d.At = byteOf(d.Error)
		return http.StatusBadRequest, d
	case fault.OverBudget(err):
		d.Class = "limit"
		return http.StatusRequestEntityTooLarge, d
	case errors.Is(err, fault.Bug):
		d.Class = "bug"
		return http.StatusInternalServerError, d
	}
	return http.StatusUnprocessableEntity, d
}

// byteOf returns the byte of a predicate that an error of package pred names, or nil.
func byteOf(message string) *int {
	_, rest, ok := strings.Cut(message, "(byte ")
	if !ok {
		return nil
	}
	digits, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return nil
	}
	return &n
}
