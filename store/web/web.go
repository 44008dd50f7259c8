// Package web is the client for web servers. Importing it makes addresses that begin with https:// or http:// places
// for stoa. A server should support range requests; from one that does not, a file is read completely, once.
//
// Web servers have no directories. A directory is a path with a file stoa-index.txt in it, which lists the files that
// belong to it, at any depth, one per line, each after its size in bytes and a tab if the size is known:
//
//	cd DIR && find . -type f ! -name stoa-index.txt -printf '%s\t%P\n' > stoa-index.txt
//
// A user and password in the address are sent with each request (Basic), as is the query. Neither is sent to another
// host, or appears in names and errors.
package web

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/internal/sorted"
	"stoa/store"
	"stoa/store/remote"
)

func init() {
	remote.Register("http", Open)
	remote.Register("https", Open)
}

// Index is the name of the file that makes a path a directory.
const Index = "stoa-index.txt"

// maxIndex is the maximum size of an index in bytes.
const maxIndex = 64 << 20

// Open returns the client for an address's host.
func Open(_ context.Context, a remote.Address) (remote.Client, error) {
	user, password, _ := strings.Cut(a.User, ":")
	u, err1 := url.PathUnescape(user)
	p, err2 := url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return nil, errors.New("the user or password in the address is not correctly escaped")
	}
	return &client{scheme: a.Scheme, host: a.Host, user: u, password: p,
		http: &http.Client{Transport: remote.Transport(), CheckRedirect: redirected}}, nil
}

type client struct {
	scheme, host   string
	user, password string
	http           *http.Client
}

func (c *client) Traits() remote.Traits { return remote.Traits{} }

// redirected removes secrets from a request that is redirected to another host.
func redirected(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) >= 10:
		return &remote.Error{Reason: "the server redirects more than 10 times"}
	case first.Scheme == "https" && r.URL.Scheme != "https":
		return &remote.Error{Reason: "the server redirects from https to http"}
	}
	r.Header.Del("Referer")
	if r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
		r.Header.Del("Authorization")
		r.Header.Del("Cookie")
	} else if user, password, ok := via[0].BasicAuth(); ok {
		r.SetBasicAuth(user, password)
	}
	return nil
}

// ask makes one request. A status other than 200 or 206 is an error.
func (c *client) ask(ctx context.Context, method, key, query string, h http.Header) (*http.Response, error) {
	u := url.URL{Scheme: c.scheme, Host: c.host, Path: "/" + key, RawQuery: query}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, &remote.Error{Reason: "it makes no valid URL"}
	}
	for k, v := range h {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", "stoa")
	if c.user != "" || c.password != "" {
		req.SetBasicAuth(c.user, c.password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, remote.TransportError(err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		resp.Body.Close()
		return nil, remote.StatusError(resp.StatusCode, http.StatusText(resp.StatusCode), resp.Header)
	}
	return resp, nil
}

// Head returns an object's size and stamp. If HEAD is not allowed, it requests the first byte.
func (c *client) Head(ctx context.Context, key, query string) (remote.Object, error) {
	resp, err := c.ask(ctx, http.MethodHead, key, query, nil)
	var e *remote.Error
	if errors.As(err, &e) && !errors.Is(err, fs.ErrNotExist) && !e.Again {
		resp, err = c.ask(ctx, http.MethodGet, key, query, http.Header{"Range": {"bytes=0-0"}})
		if errors.Is(err, store.ErrChanged) { // an empty file has no first byte
			resp, err = c.ask(ctx, http.MethodGet, key, query, nil)
		}
	}
	if err != nil {
		return remote.Object{}, err
	}
	resp.Body.Close()
	if strings.HasSuffix(resp.Request.URL.Path, "/") { // the page of a directory is not a file
		return remote.Object{}, remote.StatusError(http.StatusNotFound, "a directory", nil)
	}
	return c.object(key, resp)
}

func (c *client) object(key string, resp *http.Response) (remote.Object, error) {
	_, size := remote.RangeOf(resp.StatusCode, resp.Header)
	if resp.Header.Get("Content-Encoding") != "" {
		return remote.Object{}, remote.ErrCompressed
	}
	if size < 0 {
		return remote.Object{}, &remote.Error{Reason: "the server does not say how large the file is"}
	}
	return remote.Object{Key: key, Size: size, Stamp: stamp(resp.Header), Changed: changed(resp.Header)}, nil
}

// stamp returns an answer's ETag, or else the time of the last change.
func stamp(h http.Header) string { return cmp.Or(h.Get("ETag"), h.Get("Last-Modified")) }

// changed returns the time of the last change; zero: the answer has none.
func changed(h http.Header) time.Time {
	t, _ := http.ParseTime(h.Get("Last-Modified"))
	return t
}

// Get requests a range of the object with the stamp of o.
func (c *client) Get(ctx context.Context, o remote.Object, query string, off, n int64) (remote.Body, error) {
	h := http.Header{}
	if n >= 0 {
		h.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+n-1))
	}
	switch {
	case strings.HasPrefix(o.Stamp, `"`):
		h.Set("If-Match", o.Stamp)
	case o.Stamp != "" && !strings.HasPrefix(o.Stamp, "W/"): // a weak one never matches; the answer's is compared
		h.Set("If-Unmodified-Since", o.Stamp)
	}
	resp, err := c.ask(ctx, http.MethodGet, o.Key, query, h)
	if err != nil {
		return remote.Body{}, err
	}
	from, size := remote.RangeOf(resp.StatusCode, resp.Header)
	switch {
	case resp.Header.Get("Content-Encoding") != "":
		err = remote.ErrCompressed
	case from < 0:
		err = remote.ErrNoRange
	}
	if err != nil {
		resp.Body.Close()
		return remote.Body{}, err
	}
	return remote.Body{ReadCloser: resp.Body, Off: from, Object: remote.Object{Key: o.Key, Size: size,
		Stamp: stamp(resp.Header), Changed: changed(resp.Header)}}, nil
}

// List reads the index of a directory.
func (c *client) List(ctx context.Context, prefix, _ string, shallow bool) ([]remote.Object, bool, error) {
	resp, err := c.ask(ctx, http.MethodGet, prefix+Index, "", nil)
	if err != nil {
		return nil, false, err
	}
	defer resp.Body.Close()
	all, err := parseIndex(io.LimitReader(resp.Body, maxIndex+1), prefix)
	if err != nil {
		return nil, false, err
	}
	for i := range all {
		rest := strings.TrimPrefix(all[i].Key, prefix)
		if first, _, deeper := strings.Cut(rest, "/"); shallow && deeper {
			all[i] = remote.Object{Key: prefix + first + "/", Dir: true}
		} else if all[i].Size < 0 {
			if all[i], err = c.Head(ctx, all[i].Key, ""); err != nil {
				return nil, false, fmt.Errorf("%s, which is in %s: %w", rest, Index, err)
			}
		}
	}
	sorted.By(all, func(a, b remote.Object) int { return cmp.Compare(a.Key, b.Key) })
	return slices.CompactFunc(all, func(a, b remote.Object) bool { return a.Key == b.Key }), false, nil
}

// parseIndex reads the lines of an index.
func parseIndex(r io.Reader, prefix string) (all []remote.Object, err error) {
	read := 0
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for no := 1; lines.Scan(); no++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if read += len(line) + 1; read > maxIndex {
			return nil, &remote.Error{Reason: fmt.Sprintf("%s has more than %d bytes", Index, maxIndex)}
		}
		size, name := int64(-1), line
		if s, rest, ok := strings.Cut(line, "\t"); ok {
			if size, err = strconv.ParseInt(s, 10, 64); err != nil || size < 0 {
				return nil, &remote.Error{Reason: fmt.Sprintf("line %d of %s: expected a size before the tab", no,
					Index)}
			}
			name = rest
		}
		if name == "" && size < 0 {
			continue
		}
		name = strings.TrimPrefix(name, "./")
		if name == "" || path.Clean("/"+name) != "/"+name {
			return nil, &remote.Error{Reason: fmt.Sprintf("line %d of %s: expected the path of a file below the "+
				"directory", no, Index)}
		}
		if path.Base(name) != Index {
			all = append(all, remote.Object{Key: prefix + name, Size: size})
		}
	}
	return all, lines.Err()
}
