package hdfs

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"stoa/store"
	"stoa/store/remote"
)

const (
	maxHandles  = 16               // connections to the namenode
	idleTimeout = 30 * time.Second // of a connection in use
	dialTimeout = 5 * time.Second
	// readBuffer limits what a datanode sends in vain: it sends a whole block, whatever range of it is wanted.
	readBuffer = 1 << 20
	connBuffer = 64 << 10
)

// pool has the handles of a file system. The library makes one request at a time per connection, so there are several.
type pool struct {
	options hdfs.ClientOptions
	places  chan struct{}

	mu   sync.Mutex
	idle []*handle
}

// handle is a connection to the namenode, used by one request at a time, with those to datanodes that were made for it.
type handle struct {
	api *hdfs.Client

	mu    sync.Mutex
	conns map[*conn]bool
}

func newPool(o hdfs.ClientOptions) *pool {
	return &pool{options: o, places: make(chan struct{}, maxHandles)}
}

// take returns a handle that nobody else uses.
func (p *pool) take(ctx context.Context) (*handle, error) {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		h := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return h, nil
	}
	p.mu.Unlock()
	h := &handle{conns: map[*conn]bool{}}
	o := p.options
	o.NamenodeDialFunc, o.DatanodeDialFunc = h.dial, h.dial
	stop := context.AfterFunc(ctx, h.hangUp)
	defer stop()
	var err error
	if h.api, err = hdfs.NewClient(o); err != nil {
		h.hangUp()
		<-p.places
		return nil, reason(err)
	}
	return h, nil
}

// give returns a handle after a request that ended with err. A connection that broke is not used again, as the library
// does not notice that answers are missing.
func (p *pool) give(ctx context.Context, h *handle, err error) error {
	out := reason(err)
	var known *remote.Error
	if ctx.Err() != nil || out != nil && (!errors.As(out, &known) || known.Again) {
		_ = h.api.Close()
		h.hangUp()
	} else {
		p.mu.Lock()
		p.idle = append(p.idle, h)
		p.mu.Unlock()
	}
	<-p.places
	return out
}

// do makes a request.
func (p *pool) do(ctx context.Context, what func(*handle) error) error {
	h, err := p.take(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, h.hangUp)
	defer stop()
	return p.give(ctx, h, what(h))
}

// hangUp closes all connections, so that what waits for an answer ends.
func (h *handle) hangUp() {
	h.mu.Lock()
	all := h.conns
	h.conns = nil
	h.mu.Unlock()
	for c := range all {
		_ = c.Conn.Close()
	}
}

func (h *handle) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(readBuffer)
	}
	mine := &conn{Conn: c, h: h}
	mine.in = bufio.NewReaderSize(patient{c}, connBuffer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conns == nil {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	h.conns[mine] = true
	return mine, nil
}

// conn is a connection that fails if it makes no progress. It is buffered, as the library reads few bytes at a time.
type conn struct {
	net.Conn
	h  *handle
	in *bufio.Reader
}

func (c *conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// patient waits for data for a limited time.
type patient struct{ net.Conn }

func (c patient) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(idleTimeout))
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(idleTimeout))
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.h.mu.Lock()
	delete(c.h.conns, c)
	c.h.mu.Unlock()
	return c.Conn.Close()
}

// SetDeadline does nothing: the library resets deadlines, and these are set by Read and Write.
func (c *conn) SetDeadline(time.Time) error { return nil }

// passing are the exceptions after which the same request may succeed.
var passing = []string{"StandbyException", "RetriableException", "SafeModeException", "NotReplicatedYetException",
	"RetryStartFileException",
	"ServerTooBusyException", "NoRouteToHostException", "ConnectException", "SocketTimeoutException"}

// reason converts an error of the library. Of an exception only its class is repeated.
func reason(err error) error {
	var known *remote.Error
	var remoteErr hdfs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, fs.ErrNotExist):
		return &remote.Error{Kind: fs.ErrNotExist, Reason: "there is no such file"}
	case errors.Is(err, fs.ErrPermission):
		return &remote.Error{Kind: fs.ErrPermission, Reason: "access denied"}
	case errors.Is(err, fs.ErrExist):
		return &remote.Error{Kind: fs.ErrExist, Reason: "there is a file of that name"}
	case errors.Is(err, store.ErrChanged):
		return err
	case errors.As(err, &remoteErr):
		class := remoteErr.Exception()
		class = class[strings.LastIndexByte(class, '.')+1:]
		switch class {
		case "FileNotFoundException", "ParentNotDirectoryException":
			return &remote.Error{Kind: fs.ErrNotExist, Reason: "there is no such file"}
		case "AlreadyBeingCreatedException", "RecoveryInProgressException":
			return &remote.Error{Kind: fs.ErrExist, Reason: "another program has opened the file for writing"}
		case "AccessControlException", "AuthorizationException", "InvalidToken":
			return &remote.Error{Kind: fs.ErrPermission, Reason: "access denied"}
		}
		return &remote.Error{Again: slices.Contains(passing, class), Reason: "the namenode answers " + printable(class)}
	}
	return &remote.Error{Again: true, Reason: transport(err)}
}

// transport says why there is no answer.
func transport(err error) string {
	var op *net.OpError
	text := err.Error()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout: the answer made no progress"
	case errors.As(err, &op):
		return op.Error()
	case strings.Contains(text, "StandbyException"):
		return "no namenode is active"
	case strings.HasPrefix(text, "no available namenodes"), strings.Contains(text, "no available datanodes"),
		strings.HasPrefix(text, "SASL handshake"):
		return printableLine(text)
	case strings.Contains(text, "invalid checksum"):
		return "the block's data differ from its checksum"
	}
	return "the connection broke: " + printableLine(text)
}

// printable returns a word sent by a server, without unusual characters and with limited length.
func printable(s string) string { return strings.ReplaceAll(printableLine(s), " ", "") }

func printableLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.Map(func(r rune) rune {
		if r >= ' ' && r < 0x7f {
			return r
		}
		return -1
	}, s[:min(len(s), 200)])
}
