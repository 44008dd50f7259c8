// Package remote makes a store.Tree of stores that are asked over a network: buckets, web servers. It asks little: one
// listing answers what is where, small objects are read whole and with their kin, and every read names the version of
// the object that it wants, so that what is read is of one version or an error.
//
// The clients are packages of their own, which register the schemes of their addresses when they are imported:
//
//	import _ "stoa/store/s3"  // s3://bucket/key
//	import _ "stoa/store/web" // https://host/path, http://host/path
//
// A name in the tree is the address without what is secret in it: user, password, and what follows the question mark.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa/store"
)

// Object is what a store says of one object.
type Object struct {
	Key   string // from the root of the bucket or host, without a slash in front
	Size  int64  // -1: not known
	Stamp string // another one for other contents: the ETag, or what the store has instead; "" = it has none
	Dir   bool   // no object, but a prefix that objects have; Key ends with a slash

	Changed time.Time // when it was written, as far as the store says
}

// Body is what a Get gives.
type Body struct {
	io.ReadCloser
	Object
	Off int64 // of the first byte that is read, in the object: 0 where the store knows no ranges
}

// Client asks one bucket or host. It is safe for concurrent use, and makes one request a call: Tree repeats what fails.
type Client interface {
	// List gives a page of the keys that begin with prefix and come after after, in the order of their bytes. shallow:
	// what follows a slash after the prefix is one Dir. fs.ErrNotExist: the store has no listing of that prefix.
	List(ctx context.Context, prefix, after string, shallow bool) (page []Object, more bool, err error)
	Head(ctx context.Context, key, version string) (Object, error)
	// Get reads n bytes from off on, fewer at the object's end, of the object that has the stamp of o; else the error
	// is store.ErrChanged. An empty stamp is any.
	Get(ctx context.Context, o Object, version string, off, n int64) (Body, error)
	// Traits are what the store can do.
	Traits() Traits
}

// Traits are what a kind of store can do.
type Traits struct {
	Lists bool // every prefix can be listed; else a listing is there where somebody put one
	// InOrder: of a Writer, the parts of an object come one after the other, from the first on.
	InOrder bool
}

// Error is what a store answered, or why it did not.
type Error struct {
	Kind   error         // fs.ErrNotExist, fs.ErrPermission, store.ErrChanged or nil: something else
	Again  bool          // the same request may succeed later
	After  time.Duration // the store asks to wait so long; 0: it says nothing
	Reason string        // without addresses and secrets
}

func (e *Error) Error() string { return e.Reason }
func (e *Error) Unwrap() error { return e.Kind }

// Address is an address taken apart.
type Address struct {
	Scheme string // "s3"
	User   string // user:password, as it stands in the address; secret
	Host   string // the bucket, or host:port
	Key    string // without the slash in front
	Query  string // what follows the question mark; it may be secret
}

// Root is the address of the bucket or host.
func (a Address) Root() string { return a.Scheme + "://" + a.Host }

// Name is the name of the address in a tree.
func (a Address) Name() string {
	if a.Key == "" {
		return a.Root()
	}
	return a.Root() + "/" + a.Key
}

// known are schemes by which an address is recognized even if no client is registered for them.
var known = []string{"s3", "http", "https", "hdfs", "gs", "az"}

// Is reports whether a name is an address, as it was given, or with one slash after the scheme, as path.Clean has it.
func Is(name string) bool {
	scheme, rest, ok := strings.Cut(name, ":/")
	return ok && rest != "" && rest != "/" && (slices.Contains(known, scheme) || openerOf(scheme) != nil)
}

// Shown is a name as an address is written: path.Clean takes one of the two slashes after the scheme away.
func Shown(name string) string {
	if scheme, rest, ok := strings.Cut(name, ":/"); ok && !strings.HasPrefix(rest, "/") && Is(name) {
		return scheme + "://" + rest
	}
	return name
}

// Parse takes an address apart.
func Parse(name string) (a Address, err error) {
	scheme, rest, ok := strings.Cut(name, ":/")
	if !ok {
		return a, fmt.Errorf("%s is no address", name)
	}
	a.Scheme = scheme
	rest = strings.TrimPrefix(rest, "/")
	a.Host, a.Key, _ = strings.Cut(rest, "/")
	if scheme == "http" || scheme == "https" || strings.Contains(a.Key, "?versionId=") {
		a.Key, a.Query, _ = strings.Cut(a.Key, "?")
	}
	if i := strings.LastIndexByte(a.Host, '@'); i >= 0 {
		a.User, a.Host = a.Host[:i], a.Host[i+1:]
	}
	if a.Host == "" {
		return a, fmt.Errorf("%s names no %s", a.Name(), map[bool]string{true: "bucket", false: "host"}[scheme == "s3"])
	}
	return a, nil
}

// Opener makes the client of an address's bucket or host.
type Opener func(ctx context.Context, a Address) (Client, error)

var openers struct {
	sync.Mutex
	of map[string]Opener
}

// Register has the addresses of a scheme opened by a client.
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

// isMissing reports whether there is no object, or no listing, of a name.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// isDenied reports whether the store does not let us ask.
func isDenied(err error) bool { return errors.Is(err, fs.ErrPermission) }

// at is err about a name: the address is said once, and nothing else of it.
func at(op, name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return err
	}
	if errors.Is(err, store.ErrChanged) {
		return fmt.Errorf("%s %w while it was read", Shown(name), store.ErrChanged)
	}
	return &fs.PathError{Op: op, Path: Shown(name), Err: err}
}
