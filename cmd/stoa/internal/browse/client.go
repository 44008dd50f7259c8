package browse

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// client asks a handler in this process, as an HTTP client asks a server.
type client struct{ http.Handler }

// problem is an answer that is an error.
type problem struct {
	Message string `json:"error"`
	Class   string `json:"class"`
	At      *int   `json:"at"` // the byte of a predicate
}

func (p *problem) Error() string { return p.Message }

// ask fills doc with the answer to a request for /api/what.
func (c client) ask(ctx context.Context, what string, q url.Values, doc any) error {
	return c.do(ctx, what, q, func(body io.Reader) error { return json.NewDecoder(body).Decode(doc) })
}

// lines passes on the lines of an answer as they come.
func (c client) lines(ctx context.Context, what string, q url.Values, each func([]byte)) error {
	return c.do(ctx, what, q, func(body io.Reader) error {
		s := bufio.NewScanner(body)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			each(s.Bytes())
		}
		return s.Err()
	})
}

func (c client) do(ctx context.Context, what string, q url.Values, read func(io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/"+what+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	body, end := io.Pipe()
	w := &answer{w: end, header: http.Header{}, begun: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			p := recover()
			w.WriteHeader(http.StatusOK)
			if p != nil { // as a server breaks the connection
				end.CloseWithError(fmt.Errorf("the answer broke off: %v", p))
			}
			end.Close()
		}()
		c.ServeHTTP(w, r)
	}()
	<-w.begun
	if w.status == http.StatusOK {
		err = read(body)
	} else {
		p := &problem{}
		if err = json.NewDecoder(body).Decode(p); err == nil {
			err = p
		}
	}
	cancel()
	body.CloseWithError(context.Canceled)
	<-ended
	return err
}

// answer is an http.ResponseWriter whose body goes through a pipe.
type answer struct {
	w      *io.PipeWriter
	header http.Header
	status int
	begun  chan struct{} // closed when status is known
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		close(a.begun)
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.w.Write(b)
}
