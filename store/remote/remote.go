// Package remote provides a store.Tree of stores on a network: buckets and web servers. It makes few requests: one
// listing returns all objects, and small objects are read whole, together with similar ones next to them. Each read
// names the version of the object, so data of two versions are never mixed.
//
// The clients are separate packages, which register the schemes of their addresses when they are imported:
//
//	import _ "stoa/store/s3"  // s3://bucket/key
//	import _ "stoa/store/web" // https://host/path, http://host/path
//
// A name in the tree is the address without its secrets: user, password, and the query.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"stoa/fault"
	"stoa/store"
)

// Object is the metadata of an object.
type Object struct {
	Key   string // within the bucket or host, without a leading slash
	Size  int64  // -1: not known
	Stamp string // changes with the content: the ETag, or what the store has instead; "" = none
	Dir   bool   // not an object, but a common prefix; Key ends with a slash

	Changed time.Time // when it was last written; zero: not known
}

// Body is the answer to a Get.
type Body struct {
	io.ReadCloser
	Object
	Off int64 // offset of the first byte in the object; 0 if the store does not support ranges
}

// Client makes requests to one bucket or host. It is safe for concurrent use, and makes one request per call: Tree
// repeats failed ones.
type Client interface {
	// List returns a page of the keys with a prefix that are greater than after, in byte order. With shallow, keys with
	// a slash after the prefix are grouped as Dirs. fs.ErrNotExist: the store has no listing of that prefix.
	List(ctx context.Context, prefix, after string, shallow bool) (page []Object, more bool, err error)
	Head(ctx context.Context, key, version string) (Object, error)
	// Get reads n bytes from off on, fewer at the object's end. If o has a stamp and the object has a different one,
	// the error is store.ErrChanged.
	Get(ctx context.Context, o Object, version string, off, n int64) (Body, error)
	// Traits returns what the store can do.
	Traits() Traits
}

// Traits are what a kind of store can do.
type Traits struct {
	Lists bool // every prefix can be listed; otherwise only those for which a listing has been stored
	Flat  bool // a listing is of one directory, whatever is asked for
	Whole bool // a Writer writes objects only by Put
}

// Error is an error that a store returned, or the lack of an answer.
type Error struct {
	Kind   error         // fs.ErrNotExist, fs.ErrPermission, store.ErrChanged; nil: another error
	Again  bool          // the same request may succeed later
	After  time.Duration // pause that the store requests; 0: none
	Reason string        // without addresses and secrets

	Credentials bool // it is about the credentials, not about the object
}

func (e *Error) Error() string { return e.Reason }
func (e *Error) Unwrap() error { return e.Kind }

// Address is a parsed address.
type Address struct {
	Scheme string // "s3"
	User   string // user:password, as in the address; secret
	Host   string // the bucket, or host:port
	Key    string // without the leading slash
	Query  string // the part after the question mark; it may be secret
}

// Root returns the address of the bucket or host.
func (a Address) Root() string { return a.Scheme + "://" + a.Host }

// Name returns the name of the address in a tree.
func (a Address) Name() string {
	if a.Key == "" {
		return a.Root()
	}
	return a.Root() + "/" + a.Key
}

// knownSchemes are recognized as address schemes even if no client is registered for them.
var knownSchemes = []string{"s3", "http", "https", "hdfs", "gs", "az"}

// Is reports whether a name is an address, either as given, or with one slash after the scheme, as path.Clean leaves
// it.
func Is(name string) bool {
	scheme, rest, ok := strings.Cut(name, ":/")
	return ok && rest != "" && rest != "/" && (slices.Contains(knownSchemes, scheme) || openerOf(scheme) != nil)
}

// Unknown returns an error, without what may be secret, for an address of a scheme for which there is no client. Taken
// for the name of a file that does not exist, it would be repeated in messages and documents.
func Unknown(name string) error {
	scheme, rest, ok := strings.Cut(name, "://")
	const ofSchemes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."
	if !ok || len(scheme) < 2 || Is(name) || strings.Trim(scheme, ofSchemes) != "" {
		return nil
	}
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	a := Address{Scheme: scheme}
	_, a.Host, a.Key = parts(scheme, rest)
	a.Key, _, _ = strings.Cut(a.Key, "?")
	own := strings.ToLower(scheme)
	if own == "s3a" || own == "s3n" { // Hadoop's names of S3
		own = "s3"
	}
	meant := ""
	if Is(own + "://x") {
		meant = ": " + own + ":// is meant"
	}
	return fault.Unsupportedf(fault.Span{Object: a.Name()}, "", "this program has no client for %s: addresses%s",
		scheme, meant)
}

// Shown returns a name as an address is written: path.Clean removes one of the two slashes after the scheme.
func Shown(name string) string {
	if scheme, rest, ok := strings.Cut(name, ":/"); ok && !strings.HasPrefix(rest, "/") && Is(name) {
		return scheme + "://" + rest
	}
	return name
}

// Parse parses an address.
func Parse(name string) (a Address, err error) {
	scheme, rest, ok := strings.Cut(name, ":/")
	if !ok {
		return a, fmt.Errorf("%s is not an address", name)
	}
	a.Scheme = scheme
	a.User, a.Host, a.Key = parts(scheme, strings.TrimPrefix(rest, "/"))
	if scheme == "http" || scheme == "https" || strings.Contains(a.Key, "?versionId=") {
		a.Key, a.Query, _ = strings.Cut(a.Key, "?")
	}
	if of := defaultHostOf(scheme); a.Host == "" && of != nil {
		if a.Host, err = of(); err != nil {
			return a, fmt.Errorf("%s: %w", a.Name(), err)
		}
	}
	if a.Host == "" {
		return a, fmt.Errorf("%s names no %s", a.Name(), map[bool]string{true: "bucket", false: "host"}[scheme == "s3"])
	}
	return a, nil
}

// parts divides what follows an address's scheme. A password may have slashes that are not escaped, as keys of S3 have:
// no bucket has a colon in its name, and a port is a number.
func parts(scheme, rest string) (user, host, key string) {
	host, key, _ = strings.Cut(rest, "/")
	end := strings.LastIndexByte(host, '@')
	if name, port, colon := strings.Cut(host, ":"); end < 0 && colon && !strings.HasPrefix(name, "[") {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || scheme == "s3" {
			end = strings.LastIndexByte(rest, '@')
		}
	}
	if end < 0 {
		return "", host, key
	}
	host, key, _ = strings.Cut(rest[end+1:], "/")
	return rest[:end], host, key
}

// Opener returns the client for an address's bucket or host.
type Opener func(ctx context.Context, a Address) (Client, error)

var openers struct {
	sync.Mutex
	of    map[string]Opener
	hosts map[string]func() (string, error)
}

// RegisterDefaultHost registers how the host is found of addresses of a scheme that name none.
func RegisterDefaultHost(scheme string, host func() (string, error)) {
	openers.Lock()
	defer openers.Unlock()
	if openers.hosts == nil {
		openers.hosts = map[string]func() (string, error){}
	}
	openers.hosts[scheme] = host
}

func defaultHostOf(scheme string) func() (string, error) {
	openers.Lock()
	defer openers.Unlock()
	return openers.hosts[scheme]
}

// Register registers the client for the addresses of a scheme.
func Register(scheme string, open Opener) {
	openers.Lock()
	defer openers.Unlock()
	if openers.of == nil {
		openers.of = map[string]Opener{}
	}
	openers.of[scheme] = open
}

func openerOf(scheme string) Opener {
	openers.Lock()
	defer openers.Unlock()
	return openers.of[scheme]
}

// isMissing reports whether an object, or a listing, does not exist.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// isDenied reports whether the store denies access.
func isDenied(err error) bool { return errors.Is(err, fs.ErrPermission) }

// pathError adds the operation and the name to err, unless err has them.
func pathError(op, name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return err
	}
	if err == fs.ErrNotExist {
		err = syscall.ENOENT // in the words of a disk
	}
	if errors.Is(err, store.ErrChanged) {
		why := ""
		if e := new(Error); errors.As(err, &e) {
			why = " (" + e.Reason + ")"
		}
		return fmt.Errorf("%s %w while it was read%s", Shown(name), store.ErrChanged, why)
	}
	return &fs.PathError{Op: op, Path: Shown(name), Err: err}
}
