package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const maxMessage = 1 << 20 // bytes of a line from the client

// messages passes the lines of a client on that are messages, and answers the others. The SDK would end at the first
// line that is none, and hold a line of any length.
type messages struct {
	in    *bufio.Reader
	out   io.Writer
	rest  []byte      // of the line that is being passed on
	ended atomic.Bool // the client has gone
}

func newMessages(in io.Reader, out io.Writer) *messages {
	return &messages{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.line()
		if err != nil {
			m.ended.Store(true)
			return 0, err
		}
		m.rest = line
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (*messages) Close() error { return nil }

// line returns the next line if it is a message, and nothing if it is not.
func (m *messages) line() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := m.in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxMessage; !tooLong {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(bytes.TrimSpace(line)) == 0 && !tooLong) {
			return nil, err
		}
		break
	}
	if tooLong {
		return nil, m.refuse(-32600, fmt.Errorf("expected at most %d bytes in a message", maxMessage))
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil, nil
	}
	if !json.Valid(line) {
		return nil, m.refuse(-32700, errors.New("expected one JSON value in a line"))
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return nil, m.refuse(-32600, err)
	}
	return append(line, '\n'), nil
}

// refuse answers a line that is no message, and has no id that could be repeated.
func (m *messages) refuse(code int, why error) error {
	text, err := json.Marshal(why.Error())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(m.out, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%s}}`+"\n", code, text)
	return err
}

// whole writes one message at a time: those of the SDK, and those of messages.
type whole struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *whole) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

func (*whole) Close() error { return nil }
