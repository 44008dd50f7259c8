package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// Last is what of the objects that make a lake readable comes after the first of them: whoever finds the
	// directory with one catalogue alone can add the other one.
	Last map[string][]byte `json:"last,omitempty"`
}

const unfinishedKind = "unfinished"

// now returns the time in whole seconds, the resolution of stores.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// commitDir makes the objects of a directory visible; the one created last, which refers to the others, comes last, and
// what makes a lake readable after all others: other engines may use the table from then on, so nothing is removed any
// more. The caller holds mu.
func (s *sink) commitDir(ctx context.Context) (err error) {
	first, then := s.phases()
	s.objects = slices.Concat(first, then)
	doc := unfinished{Stoa: unfinishedKind, ID: newID(), Begun: now()}
	for _, o := range s.objects {
		doc.Objects = append(doc.Objects, strings.TrimPrefix(o.key, prefixOf(s.key)))
	}
	err = s.remember(&doc)
	if err != nil {
		return err
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

// remember adds to the mark what comes after the object that makes a lake readable.
func (s *sink) remember(doc *unfinished) error {
	opens, first := opening(doc.Objects), true
	for i, o := range s.objects {
		name := doc.Objects[i]
		if !opens[name] {
			continue
		}
		if !first && o.parts == 0 && o.size <= maxLast {
			text := make([]byte, o.size)
			if _, err := o.file.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			doc.Last = map[string][]byte{name: text}
		}
		first = false
	}
	return nil
}

// maxLast is the maximum size of an object that a mark has, in bytes: it takes a third more there.
const maxLast = maxMark / 4

// phases returns the objects that appear in any order, and then those that make the directory readable. A history
// appears as a whole: the newest metadata of Iceberg come before the older ones, whose snapshots they have too, and the
// first version of a Delta log, without which nobody can read it, comes after all others.
func (s *sink) phases() (first, then []*outgoing) {
	var names []string
	for _, o := range s.objects {
		names = append(names, o.key)
	}
	opens := opening(names)
	var older []*outgoing
	for _, o := range s.objects {
		switch {
		case opens[o.key]:
			then = append(then, o)
		case path.Base(path.Dir(o.key)) == "metadata" && shows(o.key):
			older = append(older, o)
		default:
			first = append(first, o)
		}
	}
	if last := len(s.objects) - 1; len(then) == 0 {
		return s.objects[:last], s.objects[last:]
	}
	return first, append(then, older...)
}

// opening returns those of the objects with which a lake can be read: the first version of a Delta log, and the newest
// metadata of Iceberg.
func opening(names []string) map[string]bool {
	out, newest := map[string]bool{}, map[string]string{}
	for _, name := range names {
		dir, base := path.Split(name)
		switch {
		case !shows(name):
		case path.Base(dir) == "_delta_log":
			out[name] = base == firstVersion
		case newest[dir] == "" || versionIn(base) >= versionIn(path.Base(newest[dir])):
			delete(out, newest[dir])
			newest[dir], out[name] = name, true
		}
	}
	return out
}

const firstVersion = "00000000000000000000.json"

// versionIn returns the number in the name of metadata, v12.metadata.json; 0: it has none.
func versionIn(base string) (n int) {
	_, _ = fmt.Sscanf(base, "v%d.", &n)
	return n
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
