package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"stoa/fault"
)

// Writer is a Client that can write. Like a Client, it makes one request per call and repeats none.
type Writer interface {
	Client
	// Put writes an object of n bytes in one request. It becomes visible as a whole.
	Put(ctx context.Context, key string, body io.ReadSeeker, n int64, c Condition) (Object, error)
	// Begin begins a multipart upload and returns its id. The upload is invisible before Complete.
	Begin(ctx context.Context, key string) (id string, err error)
	// Part writes n bytes as part number no, counted from 1, and returns its tag. Parts may be written in any order, in
	// parallel, and repeatedly.
	Part(ctx context.Context, u Upload, no int, body io.ReadSeeker, n int64) (tag string, err error)
	// Complete makes an object of parts 1 to len(tags) visible. fs.ErrNotExist: the upload does not exist, or no longer
	// does.
	Complete(ctx context.Context, u Upload, tags []string, c Condition) (Object, error)
	// Discard removes an incomplete upload. It is not an error if there is none.
	Discard(ctx context.Context, u Upload) error
	// Uploads returns a page of the incomplete uploads below a prefix that follow after, ordered by key and id.
	Uploads(ctx context.Context, prefix string, after Upload) (page []Upload, more bool, err error)
	// Delete removes an object. It is not an error if there is none.
	Delete(ctx context.Context, key string) error
}

// Upload is an object that is being written in parts.
type Upload struct {
	Key, ID string
	Begun   time.Time
	First   int64 // size of the first part; 0: none, or not known
	Ours    bool  // its name says that it is one of stoa's
}

// Condition must hold for an object to become visible; otherwise the error is fs.ErrExist or store.ErrChanged.
type Condition struct {
	Absent bool   // no object with that key exists
	Stamp  string // the object with that key has this stamp; "": any
}

// The kinds of requests that write.
const (
	Put Kind = iota + kindsOfReading
	Delete
)

// writer returns the client of r, if it can write.
func (r *root) writer() (Writer, error) {
	w, ok := r.client.(Writer)
	if !ok {
		return nil, &Error{Reason: "addresses of this kind are read-only"}
	}
	return w, nil
}

// put writes an object in one request. If an answer was lost and the condition fails at the next attempt, the existing
// object may be the one just written, so their contents are compared. See Place.Put for its errors.
func (r *root) put(ctx context.Context, key string, body io.ReaderAt, n int64, c Condition) (o Object, err error) {
	w, err := r.writer()
	if err != nil {
		return o, err
	}
	attempts := 0
	err = r.requests.try(ctx, Put, func(ctx context.Context) (bool, error) {
		attempts++
		return false, r.requests.watched(ctx, func(ctx context.Context, alive func(io.Reader) io.Reader) error {
			o, err = w.Put(ctx, key, bodyReader{io.NewSectionReader(body, 0, n), alive}, n, c)
			return err
		})
	})
	if err != nil {
		o, err = r.settle(ctx, key, body, n, attempts, err)
	}
	if err == nil {
		o.Key, o.Size = key, n
		r.requests.sent(n)
		r.wrote(o)
	}
	return o, err
}

// settle finds out whether a write that failed was done nevertheless. A first answer that refuses it is final; after a
// lost answer, the object is compared with what was to be written.
func (r *root) settle(ctx context.Context, key string, body io.ReaderAt, n int64, attempts int, err error) (Object,
	error) {
	if attempts == 0 {
		return Object{}, err
	}
	_, again := repeat(err)
	refused := ctx.Err() == nil && !again
	if refused && attempts == 1 {
		return Object{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	o, same, e := r.holds(ctx, key, body, n)
	if e == nil && same {
		return o, nil
	}
	return Object{}, &UncertainError{err}
}

// settleTime limits how long it is tried to find out whether a write was done.
const settleTime = 30 * time.Second

// holds reports whether an object has exactly these bytes.
func (r *root) holds(ctx context.Context, key string, want io.ReaderAt, n int64) (o Object, same bool, err error) {
	if o, err = r.requests.head(ctx, r.client, key, ""); err != nil || o.Size != n {
		return o, false, err
	}
	o.Key = key
	size := min(n, smallObject)
	got, ours := make([]byte, size), make([]byte, size)
	for off := int64(0); off < n; off += size {
		k := min(size, n-off)
		if err := r.requests.get(ctx, r.client, o, "", got[:k], off, nil); err != nil {
			return o, false, err
		}
		if _, err := io.ReadFull(io.NewSectionReader(want, off, k), ours[:k]); err != nil {
			return o, false, err
		}
		if !bytes.Equal(got[:k], ours[:k]) {
			return o, false, nil
		}
	}
	return o, true, nil
}

// bodyReader is a request body whose reads count as progress.
type bodyReader struct {
	*io.SectionReader
	alive func(io.Reader) io.Reader
}

func (s bodyReader) Read(p []byte) (int, error) { return s.alive(s.SectionReader).Read(p) }

// sent counts bytes sent.
func (a *requester) sent(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Sent += n
}

// part writes a part of an upload.
func (r *root) part(ctx context.Context, w Writer, u Upload, no int, body io.ReaderAt, off, n int64) (tag string,
	err error) {
	err = r.requests.try(ctx, Put, func(ctx context.Context) (bool, error) {
		return false, r.requests.watched(ctx, func(ctx context.Context, alive func(io.Reader) io.Reader) error {
			tag, err = w.Part(ctx, u, no, bodyReader{io.NewSectionReader(body, off, n), alive}, n)
			return err
		})
	})
	if err == nil {
		r.requests.sent(n)
	}
	return tag, err
}

// once makes a request whose answer has no body.
func (r *root) once(ctx context.Context, k Kind, do func(ctx context.Context) error) error {
	return r.requests.try(ctx, k, func(ctx context.Context) (bool, error) {
		return false, r.requests.watched(ctx, func(ctx context.Context, _ func(io.Reader) io.Reader) error {
			return do(ctx)
		})
	})
}

// complete makes an upload of n bytes visible. If the store no longer knows the upload, or the request was cut off, the
// answer may have been lost: the upload is complete if there is an object of that size. See Place.Put for its errors.
func (r *root) complete(ctx context.Context, w Writer, u Upload, tags []string, n int64, c Condition) (o Object,
	err error) {
	attempts := 0
	err = r.once(ctx, Put, func(ctx context.Context) error {
		attempts++
		o, err = w.Complete(ctx, u, tags, c)
		if attempts > 1 && isMissing(err) {
			if there, e := w.Head(ctx, u.Key, ""); e == nil && u.became(there, n) {
				o, err = there, nil
			}
		}
		return err
	})
	if _, again := repeat(err); attempts > 0 && (again || err != nil && (ctx.Err() != nil || attempts > 1)) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		there, e := r.requests.head(ctx, w, u.Key, "")
		if e != nil || !u.became(there, n) {
			return o, &UncertainError{err}
		}
		o, err = there, nil
	}
	if err == nil {
		o.Key, o.Size = u.Key, n
		r.wrote(o)
	}
	return o, err
}

// became reports whether an object is the upload of n bytes, as far as size and time say.
func (u Upload) became(o Object, n int64) bool {
	return o.Size == n && (o.Changed.IsZero() || !o.Changed.Before(u.Begun.Add(-time.Minute)))
}

// discard removes an upload.
func (r *root) discard(ctx context.Context, w Writer, u Upload) error {
	return r.once(ctx, Delete, func(ctx context.Context) error { return w.Discard(ctx, u) })
}

// remove removes an object.
func (r *root) remove(ctx context.Context, key string) error {
	w, err := r.writer()
	if err != nil {
		return err
	}
	err = r.once(ctx, Delete, func(ctx context.Context) error { return w.Delete(ctx, key) })
	if err == nil {
		r.removed(key)
	}
	return err
}

// wrote records an object that was written, and forgets what was known about its key.
func (r *root) wrote(o Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, o.Key)
	r.forgetAround(o.Key)
	delete(r.entered, o.Key)
	r.add(o)
}

// removed records that an object was removed.
func (r *root) removed(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, key)
	r.forgetAround(key)
}

// forgetAround forgets the listings of the directories above a key. The caller holds mu.
func (r *root) forgetAround(key string) {
	r.deep = slices.DeleteFunc(r.deep, func(d string) bool { return within(key, d) })
	for d := key; ; d = dirOf(d) {
		delete(r.absent, d)
		delete(r.empty, d)
		if d != key {
			delete(r.dirs, d)
			delete(r.isDir, d)
		}
		if d == "" {
			return
		}
	}
}

// checkConditions verifies, once, that the store respects conditions. key is an existing object with this content. A
// store that accepts a second exclusive write of it ignores conditions, which cannot be detected otherwise.
func (r *root) checkConditions(ctx context.Context, key string, content []byte) error {
	r.mu.Lock()
	tried := r.conditions
	r.mu.Unlock()
	if tried == conditionsUnknown {
		w, err := r.writer()
		if err != nil {
			return err
		}
		err = r.once(ctx, Put, func(ctx context.Context) error {
			_, err := w.Put(ctx, key, bytes.NewReader(content), int64(len(content)), Condition{Absent: true})
			return err
		})
		switch {
		case errors.Is(err, fs.ErrExist):
			tried = conditionsWork
		case err == nil || errors.Is(err, errors.ErrUnsupported):
			tried = conditionsIgnored
		default:
			return err
		}
		r.mu.Lock()
		r.conditions = tried
		r.mu.Unlock()
	}
	if tried == conditionsIgnored {
		return ErrIgnoresConditions
	}
	return nil
}

// ErrIgnoresConditions is the error for stores that do not support conditional writes, and so cannot prevent two
// writers from overwriting each other.
var ErrIgnoresConditions error = fault.Unsupportedf(fault.Span{}, "", "the store overwrites objects in spite of "+
	"If-None-Match: nothing keeps two writers apart")
