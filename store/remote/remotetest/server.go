// Package remotetest has servers for tests, which serve a directory like S3 and like a web server, and faults for them.
package remotetest

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// S3 serves the directories in dir as buckets: listings, HEAD, and GET with ranges and If-Match. It is written to by
// PUT, multipart uploads, and DELETE.
type S3 struct {
	Dir     string
	Key     string // the access key that requests must have; "" = any or none
	Expired atomic.Bool
	Denied  func(key string) bool // "" is the listing; nil: nothing is denied
	Page    int                   // keys per page; 0: 1000
	// IgnoreConditions: conditions of writes are ignored, as by some stores.
	IgnoreConditions bool
	// NoETags: objects have only the time of their last change, like files in the folder of a gateway.
	NoETags bool
	// Version is a part of every ETag: another one replaces all objects by equal ones.
	Version atomic.Int64

	Requests atomic.Int64
	writing  writing
}

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []content
	CommonPrefixes        []prefix
}

type content struct {
	Key, ETag, LastModified string
	Size                    int64
}

type prefix struct{ Prefix string }

type failure struct {
	XMLName       xml.Name `xml:"Error"`
	Code, Message string
}

func fail(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// a server's message may repeat what it was sent
		xml.NewEncoder(w).Encode(failure{Code: code, Message: "you sent " + r.Header.Get("Authorization")})
	}
}

func (s *S3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Requests.Add(1)
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if s.Key != "" && !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.Key+"/") {
		fail(w, r, http.StatusForbidden, "InvalidAccessKeyId")
		return
	}
	if s.Expired.Load() {
		fail(w, r, http.StatusBadRequest, "ExpiredToken")
		return
	}
	if s.Denied != nil && s.Denied(key) {
		fail(w, r, http.StatusForbidden, "AccessDenied")
		return
	}
	if _, err := os.Stat(filepath.Join(s.Dir, bucket)); err != nil {
		fail(w, r, http.StatusNotFound, "NoSuchBucket")
		return
	}
	if s.write(w, r, bucket, key) {
		return
	}
	if key == "" {
		s.list(w, r, filepath.Join(s.Dir, bucket))
		return
	}
	s.object(w, r, filepath.Join(s.Dir, bucket, filepath.FromSlash(key)))
}

func (s *S3) list(w http.ResponseWriter, r *http.Request, dir string) {
	q := r.URL.Query()
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	most := s.Page
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil && (most == 0 || n < most) {
		most = n
	}
	if most == 0 {
		most = 1000
	}
	var out listing
	n, last := 0, ""
	for _, k := range keysBelow(dir) {
		rest, ok := strings.CutPrefix(k, q.Get("prefix"))
		if !ok {
			continue
		}
		shown := k
		if first, _, deeper := strings.Cut(rest, "/"); deeper && q.Get("delimiter") == "/" {
			shown = q.Get("prefix") + first + "/"
		}
		if k <= after || shown <= after || shown == last {
			continue
		}
		if n == most {
			out.IsTruncated, out.NextContinuationToken = true, last
			break
		}
		n++
		if last = shown; shown != k {
			out.CommonPrefixes = append(out.CommonPrefixes, prefix{shown})
			continue
		}
		name := filepath.Join(dir, filepath.FromSlash(k))
		st, err := os.Stat(name)
		if err != nil {
			continue
		}
		tag := s.tagOf(name)
		if s.NoETags {
			tag = ""
		}
		out.Contents = append(out.Contents, content{Key: k, ETag: tag, Size: st.Size(),
			LastModified: st.ModTime().UTC().Format(time.RFC3339)})
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(out)
}

// keysBelow returns the names of the files below a directory, in byte order.
func keysBelow(dir string) (keys []string) {
	filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			keys = append(keys, filepath.ToSlash(rel))
		}
		return nil
	})
	slices.Sort(keys)
	return keys
}

func (s *S3) tagOf(name string) string {
	tag := etag(name)
	if n := s.Version.Load(); n > 0 && tag != "" {
		tag = fmt.Sprintf("%s-%d\"", strings.TrimSuffix(tag, "\""), n)
	}
	return tag
}

var etags sync.Map // by name, size and time

// etag returns the ETag of a file: the MD5 of its content, like that of S3 for an object uploaded in one part.
func etag(name string) string {
	st, err := os.Stat(name)
	if err != nil {
		return ""
	}
	key := fmt.Sprint(name, st.Size(), st.ModTime().UnixNano())
	if e, ok := etags.Load(key); ok {
		return e.(string)
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := md5.New()
	io.Copy(h, f)
	e := `"` + hex.EncodeToString(h.Sum(nil)) + `"`
	etags.Store(key, e)
	return e
}

func (s *S3) object(w http.ResponseWriter, r *http.Request, name string) {
	f, err := os.Open(name)
	if err != nil {
		fail(w, r, http.StatusNotFound, "NoSuchKey")
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.IsDir() {
		fail(w, r, http.StatusNotFound, "NoSuchKey")
		return
	}
	tag := s.tagOf(name)
	if m := r.Header.Get("If-Match"); m != "" && m != tag {
		fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	if !s.NoETags {
		w.Header().Set("ETag", tag)
	}
	http.ServeContent(w, r, "", st.ModTime(), f)
}

// NoRanges serves whole files, ignoring Range headers.
func NoRanges(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		h.ServeHTTP(noRanges{w}, r)
	})
}

type noRanges struct{ http.ResponseWriter }

func (w noRanges) WriteHeader(status int) {
	w.Header().Del("Accept-Ranges")
	w.ResponseWriter.WriteHeader(status)
}

// Faults are failures between a client and a server.
type Faults struct {
	Share   float64       // fraction of requests, 0 to 1, that fail in some way
	Latency time.Duration // of each request
	// Kinds are "500", "503", "429", "reset", "cut", and those of Odd; "lost"
	Kinds  []string
	Dead   atomic.Bool  // no request is answered any more
	DieAt  atomic.Int64 // from this request on, counted since the first one, none is answered; 0: never
	seen   atomic.Int64
	Failed atomic.Int64

	mu  sync.Mutex
	rnd *rand.Rand
}

// Odd are kinds of answers with another range than was requested, and one that is no object at all.
var Odd = []string{"whole", "short", "long", "shifted", "page"}

// Seen returns how many requests there were.
func (f *Faults) Seen() int64 { return f.seen.Load() }

// SetShare sets the share while the server works.
func (f *Faults) SetShare(share float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Share = share
}

// NewFaults returns faults whose order is determined by the seed.
func NewFaults(share float64, seed uint64) *Faults {
	return &Faults{Share: share, rnd: rand.New(rand.NewPCG(seed, 1)),
		Kinds: []string{"500", "503", "429", "reset", "cut"}}
}

// pick returns the kind of the next fault; "" = none.
func (f *Faults) pick() (kind string, at float64) {
	seen, die := f.seen.Add(1), f.DieAt.Load()
	if f.Dead.Load() || die > 0 && seen >= die {
		return "reset", 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rnd.Float64() >= f.Share {
		return "", 0
	}
	f.Failed.Add(1)
	return f.Kinds[f.rnd.IntN(len(f.Kinds))], f.rnd.Float64()
}

// On wraps a server with the faults.
func (f *Faults) On(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(f.Latency)
		kind, at := f.pick()
		switch kind {
		case "":
			h.ServeHTTP(w, r)
		case "500":
			fail(w, r, http.StatusInternalServerError, "InternalError")
		case "503":
			fail(w, r, http.StatusServiceUnavailable, "SlowDown")
		case "429":
			fail(w, r, http.StatusTooManyRequests, "SlowDown")
		case "reset":
			panic(http.ErrAbortHandler)
		case "lost": // the request is done, and nobody hears of it
			h.ServeHTTP(&unheard{h: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		case "cut":
			h.ServeHTTP(&cut{ResponseWriter: w, share: at, left: -1}, r)
			panic(http.ErrAbortHandler)
		default:
			odd(w, r, h, kind, at)
		}
	})
}

// odd answers with another range than was requested, of which the headers tell the truth, or with a page that no store
// sent.
func odd(w http.ResponseWriter, r *http.Request, h http.Handler, kind string, at float64) {
	var from, to int64
	_, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
	if err != nil || r.Method != http.MethodGet {
		h.ServeHTTP(w, r)
		return
	}
	n := to - from + 1
	part := int64(at * float64(n))
	switch kind {
	case "whole":
		r.Header.Del("Range")
		h.ServeHTTP(noRanges{w}, r)
		return
	case "page":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>You have to log in.</html>")
		return
	case "short":
		to = from + part
	case "long":
		to += part + 1
	case "shifted":
		from = max(from-part-1, 0)
	}
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to))
	h.ServeHTTP(w, r)
}

// unheard drops an answer.
type unheard struct{ h http.Header }

func (u *unheard) Header() http.Header         { return u.h }
func (u *unheard) WriteHeader(int)             {}
func (u *unheard) Write(b []byte) (int, error) { return len(b), nil }

// cut passes on only a part of an answer's body.
type cut struct {
	http.ResponseWriter
	share float64
	left  int64
}

func (c *cut) Write(b []byte) (int, error) {
	if c.left < 0 {
		n, err := strconv.ParseInt(c.Header().Get("Content-Length"), 10, 64)
		if err != nil {
			n = int64(len(b))
		}
		c.left = int64(float64(n) * c.share)
	}
	k := min(int64(len(b)), c.left)
	n, err := c.ResponseWriter.Write(b[:k])
	c.left -= int64(n)
	if err == nil && n < len(b) {
		if f, ok := c.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		err = io.ErrShortWrite
	}
	return n, err
}

// Web serves a directory as a web server does, and generates the index of each directory in it.
func Web(dir, index string) http.Handler {
	files := http.FileServer(http.Dir(dir))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below, ok := strings.CutSuffix(r.URL.Path, "/"+index)
		if st, err := os.Stat(filepath.Join(dir, filepath.FromSlash(below))); !ok || err != nil || !st.IsDir() {
			files.ServeHTTP(w, r)
			return
		}
		for _, k := range keysBelow(filepath.Join(dir, filepath.FromSlash(below))) {
			fmt.Fprintln(w, k)
		}
	})
}
