package store

import "context"

// Range is a range of bytes of an object.
type Range struct{ Off, Len int64 }

// Foreseer is an optional interface of a Source: one for which many small requests are slow.
type Foreseer interface {
	// Foresee says that ranges will be read completely, and soon. It returns a function that ends this, or nil if the
	// source makes no use of it.
	Foresee(ctx context.Context, ranges []Range) (done func())
}

// Foresee says that ranges of s will be read completely, and soon. done is to be called when they have been.
func Foresee(ctx context.Context, s Source, ranges []Range) (done func()) {
	if f, ok := s.(Foreseer); ok {
		return f.Foresee(ctx, ranges)
	}
	return nil
}
