package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// unfinished is the content of the mark of an unfinished directory.
type unfinished struct {
	Stoa    string    `json:"stoa"` // "unfinished"
	ID      string    `json:"id"`
	Begun   time.Time `json:"begun"`
	Objects []string  `json:"objects"` // in the directory
}

const unfinishedKind = "unfinished"

// now returns the time in whole seconds, the resolution of stores.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// commitDir makes the objects of a directory visible; the one created last, which refers to the others, comes last, and
// the catalogues of a lake after all others: other engines may use the table from then on, so nothing is removed any
// more. The caller holds mu.
func (s *sink) commitDir(ctx context.Context) (err error) {
	doc := unfinished{Stoa: unfinishedKind, ID: newID(), Begun: now()}
	for _, o := range s.objects {
		doc.Objects = append(doc.Objects, strings.TrimPrefix(o.key, prefixOf(s.key)))
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	if err := s.checkAbsent(ctx); err != nil {
		return pathError("create", s.name, err)
	}
	mark := path.Join(s.key, Unfinished)
	c := Condition{Absent: !s.o.SingleWriter}
	_, err = s.root.put(ctx, mark, bytes.NewReader(text), int64(len(text)), c)
	if errors.Is(err, fs.ErrExist) {
		err = errUnfinished
	} else if err == nil && !s.o.SingleWriter {
		if err = s.root.checkConditions(ctx, mark, text); err != nil {
			err = errors.Join(err, s.root.remove(context.WithoutCancel(ctx), mark))
		}
	}
	if err != nil {
		return pathError("create", s.name, err)
	}
	first, then := s.phases()
	err = s.appear(ctx, first)
	for i := 0; i < len(then) && err == nil; i++ {
		if err = then[i].appear(ctx, Condition{}); err != nil && i > 0 {
			return errors.Join(err, &Error{Reason: s.name + " can be read already, so it stays, although not all of " +
				"its catalogues are there"})
		}
	}
	if err != nil {
		return errors.Join(err, s.removeObjects(context.WithoutCancel(ctx), mark))
	}
	return pathError("remove", s.name+"/"+Unfinished, s.root.remove(context.WithoutCancel(ctx), mark))
}

// phases returns the objects that appear in any order, and then those that make the directory readable.
func (s *sink) phases() (first, then []*outgoing) {
	for _, o := range s.objects {
		if shows(o.key) {
			then = append(then, o)
		} else {
			first = append(first, o)
		}
	}
	if last := len(s.objects) - 1; len(then) == 0 {
		return s.objects[:last], s.objects[last:]
	}
	return first, then
}

// removeObjects removes the visible objects, the last one first, and then the mark. The mark stays if a request was cut
// off that the store may still carry out: the object would appear in a directory that nothing marks.
func (s *sink) removeObjects(ctx context.Context, mark string) error {
	uncertain := false
	for _, o := range slices.Backward(s.objects) {
		uncertain = uncertain || o.uncertain
		if o.put.Key == "" && !o.uncertain {
			continue
		}
		if err := s.root.remove(ctx, o.key); err != nil && !(o.uncertain && errors.Is(err, fs.ErrNotExist)) {
			return pathError("remove", o.name, err)
		}
	}
	if uncertain {
		return pathError("remove", s.name+"/"+Unfinished, errors.New("it stays, as an object whose request was cut "+
			"off may still appear; stoa clean removes both"))
	}
	return pathError("remove", s.name+"/"+Unfinished, s.root.remove(ctx, mark))
}

// appear makes objects visible, several in parallel, until one fails.
func (s *sink) appear(ctx context.Context, objects []*outgoing) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, 2*maxInFlight)
	var work sync.WaitGroup
	for _, o := range objects {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		work.Go(func() {
			if err := o.appear(ctx, Condition{}); err != nil {
				cancel(err)
			}
			<-places
		})
	}
	work.Wait()
	return context.Cause(ctx)
}
