package format

import (
	"context"
	"sync"
)

// Session keeps the results of opening places, so that a caller that opens many tables of one place opens it only once.
type Session struct {
	mu    sync.Mutex
	kept  map[any]any
	outer *Session
	brief bool
}

type sessionKey struct{}

// WithSession returns a context in which places are opened once. It is for a run over tables that do not change
// meanwhile.
func WithSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, &Session{kept: map[any]any{}})
}

// WithBriefSession returns a context for a single operation, such as the verification of one place. What it keeps is
// forgotten with the context; it finds what the session of ctx has.
func WithBriefSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{},
		&Session{kept: map[any]any{}, outer: SessionOf(ctx), brief: true})
}

// Brief reports whether a session lasts for a single operation, so that no table can appear meanwhile.
func (s *Session) Brief() bool { return s != nil && s.brief }

// SessionOf returns the session of a context, or nil.
func SessionOf(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// Load returns the value that was stored under a key, whose type is the format's own.
func (s *Session) Load(key any) (value any, ok bool) {
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok = s.kept[key]; !ok {
		return s.outer.Load(key)
	}
	return value, ok
}

// Store stores a value under a key; nil deletes it.
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
