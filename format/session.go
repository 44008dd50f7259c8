package format

import (
	"context"
	"sync"
)

// Session keeps what formats have learned of places, so that those who open many tables of one place learn it once.
type Session struct {
	mu   sync.Mutex
	kept map[any]any
}

type sessionKey struct{}

// WithSession is a context in which places are opened once. It is for a run over tables that do not change meanwhile.
func WithSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, &Session{kept: map[any]any{}})
}

// SessionOf is the session of a context; nil: there is none.
func SessionOf(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// Load is what was kept under a key, which is of a type of the format's own.
func (s *Session) Load(key any) (value any, ok bool) {
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok = s.kept[key]
	return value, ok
}

// Store keeps a value; nil forgets it.
func (s *Session) Store(key, value any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if value == nil {
		delete(s.kept, key)
		return
	}
	s.kept[key] = value
}
