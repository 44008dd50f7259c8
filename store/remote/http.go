package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stoa/store"
)

// Transport returns a transport for clients: many parallel connections to one host, HTTP/1.1, and no transparent
// decompression, since offsets are those of the stored bytes.
func Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.MaxIdleConnsPerHost, t.MaxIdleConns = 64, 256
	t.DisableCompression = true
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = nil
	p := new(http.Protocols)
	p.SetHTTP1(true)
	t.Protocols = p
	return t
}

// StatusError returns the error for an answer with a status other than success. what is stoa's own text that precedes
// the status: text from the server is not repeated.
func StatusError(status int, what string, h http.Header) *Error {
	e := &Error{Reason: strings.TrimSpace(what + " (HTTP status " + strconv.Itoa(status) + ")")}
	switch status {
	case http.StatusNotFound, http.StatusGone:
		e.Kind = fs.ErrNotExist
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		e.Kind = fs.ErrPermission
	case http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		e.Kind = store.ErrChanged
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		e.Again = true
	default:
		e.Again = status >= 500 && status != http.StatusNotImplemented
	}
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s > 0 {
		e.After = time.Duration(s) * time.Second
	}
	return e
}

// TransportError returns the error of a request without an answer. It leaves out the URL, which may contain secrets.
func TransportError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var dns *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Error{Reason: "there is no host " + dns.Name}
	case errors.As(err, &cert):
		return &Error{Reason: "the server's certificate: " + cert.Err.Error()}
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &Error{Again: true, Reason: "the connection broke, or the answer is not HTTP"} // err may quote the server
}

// Errors of answers whose bytes have no known place in the object.
var (
	ErrCompressed error = &Error{Reason: "the server, or a proxy, compresses what it sends, so where the bytes lie " +
		"in the object is not known"}
	ErrNoRange error = &Error{Reason: "the server does not say which bytes it sends"}
)

// RangeOf returns the offset and the object's size according to the headers of an answer. A size of -1 means that they
// do not say, an offset of -1 that the range is missing or malformed.
func RangeOf(status int, h http.Header) (off, size int64) {
	size = -1
	if status == http.StatusPartialContent {
		part, all, ok := strings.Cut(strings.TrimPrefix(h.Get("Content-Range"), "bytes "), "/")
		from, to, ok2 := strings.Cut(part, "-")
		n, err := strconv.ParseInt(from, 10, 64)
		if !ok || !ok2 || err != nil {
			return -1, -1
		}
		length, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
		if last, bad := strconv.ParseInt(to, 10, 64); err == nil && (bad != nil || length != last-n+1) {
			return -1, -1 // other bytes than those of the range: a proxy has compressed them
		}
		if total, err := strconv.ParseInt(all, 10, 64); err == nil {
			size = total
		}
		return n, size
	}
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		size = n
	}
	return 0, size
}
