package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Leftover is what a process left behind that was killed while it wrote to an address.
type Leftover struct {
	Name     string    // of the object, complete or not
	Begun    time.Time // when the process began it
	Upload   bool      // an incomplete upload: it is invisible, but takes up space
	Complete bool      // a mark that a directory is unfinished, although what it is about can be read
	Added    bool      // it is not removed but written: the second catalogue of a table that can be read by the first
	// Lacks is the address of what the table that a mark is about lacks to have its second catalogue; "": nothing, or
	// it is added. Used: others have used the table since, so that this would be a catalogue of an earlier state.
	Lacks string
	Used  bool
}

// Clean removes what killed processes of stoa left behind below an address, if they began it before a time: incomplete
// uploads, which it recognizes by the size of their parts, and the objects and marks of unfinished directories. A table
// that is to have two catalogues, and can be read by the first, gets the second one. It calls found before each change.
// With dry nothing is changed.
func (t *Tree) Clean(ctx context.Context, address string, before time.Time, dry bool,
	found func(Leftover) error) error {
	name, err := t.Enter(ctx, address)
	if err != nil {
		return err
	}
	r, key, err := t.find("clean", name)
	if err != nil {
		return err
	}
	w, err := r.writer()
	if err != nil {
		return pathError("clean", name, err)
	}
	c := &cleaner{r, w, key, before, dry, found}
	if err := c.uploads(ctx); err != nil {
		return pathError("clean", name, err)
	}
	return pathError("clean", name, c.directories(ctx))
}

// cleaner removes leftovers.
type cleaner struct {
	r      *root
	w      Writer
	key    string
	before time.Time
	dry    bool
	found  func(Leftover) error
}

// below reports whether a key is that of the address or below it.
func (c *cleaner) below(key string) bool { return key == c.key || within(key, c.key) }

// uploads removes incomplete uploads made by stoa.
func (c *cleaner) uploads(ctx context.Context) error {
	var after Upload
	for {
		var page []Upload
		var more bool
		err := c.r.once(ctx, Listing, func(ctx context.Context) (err error) {
			page, more, err = c.w.Uploads(ctx, c.key, after)
			return err
		})
		if err != nil {
			return err
		}
		for _, u := range page {
			after = u
			if !c.below(u.Key) || u.First != partSize && !u.Ours || !u.Begun.Before(c.before) {
				continue
			}
			if err := c.found(Leftover{Name: c.r.addr + "/" + u.Key, Begun: u.Begun, Upload: true}); err != nil {
				return err
			}
			if c.dry {
				continue
			}
			if err := c.r.discard(ctx, c.w, u); err != nil {
				return err
			}
		}
		if !more || len(page) == 0 {
			return nil
		}
	}
}

// directories removes the objects of unfinished directories, and those with which the store was tested.
func (c *cleaner) directories(ctx context.Context) error {
	const most = 10_000_000
	all, whole, err := c.r.listBelow(ctx, c.key, most)
	if err != nil && !isMissing(err) {
		return err
	}
	if !whole && err == nil {
		return errTooManyKeys
	}
	there := map[string]Object{}
	for _, o := range all {
		there[o.Key] = o
	}
	for _, o := range all {
		switch base := path.Base(o.Key); {
		case base == Unfinished:
			err = c.directory(ctx, o, there)
		case strings.HasPrefix(base, probe) && o.Size == 1 && o.Changed.Before(c.before):
			err = c.drop(ctx, o, Leftover{Name: c.r.addr + "/" + o.Key, Begun: o.Changed})
		default:
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return c.unrecorded(ctx, all)
}

// drop removes an object.
func (c *cleaner) drop(ctx context.Context, o Object, l Leftover) error {
	if err := c.found(l); err != nil || c.dry {
		return err
	}
	return c.r.remove(ctx, o.Key)
}

// directory removes those objects of an unfinished directory that were written after it was begun, those that make it
// readable first. If it can be read, it may be in use: only the mark is removed, and versions of a Delta log without a
// beginning.
func (c *cleaner) directory(ctx context.Context, mark Object, there map[string]Object) error {
	doc, err := c.r.readMark(ctx, mark)
	if err != nil {
		return err
	}
	if !doc.Begun.Before(c.before) {
		return nil
	}
	dir := dirOf(mark.Key)
	readable := doc.readable(dir, there)
	if name := doc.missing(dir, there); readable && name != "" {
		key := path.Join(dir, name)
		if err := c.found(Leftover{Name: c.r.addr + "/" + key, Begun: doc.Begun, Added: true}); err != nil {
			return err
		}
		if !c.dry {
			if err := c.r.addCatalogue(ctx, dir, name, doc); err != nil {
				return err
			}
		}
		there[key] = Object{Key: key} // so that the versions after it stay
	}
	lacks, used := "", false
	if readable {
		lacks, used = doc.lacks(dir, there)
	}
	var mine []Object
	for _, name := range slices.Backward(doc.Objects) {
		o, ok := there[path.Join(dir, name)]
		if ok && (!readable || headless(o.Key, there)) && !o.Changed.Before(doc.Begun.Add(-skew)) {
			mine = append(mine, o)
		}
	}
	for _, o := range append(mine, mark) {
		l := Leftover{Name: c.r.addr + "/" + o.Key, Begun: doc.Begun, Complete: readable && o.Key == mark.Key}
		if l.Complete && lacks != "" {
			l.Lacks, l.Used = c.r.addr+"/"+lacks, used
		}
		if err := c.drop(ctx, o, l); err != nil {
			return err
		}
	}
	return nil
}

// headless reports whether a key is that of a version of a Delta log that nobody can read, for want of the first
// version or a checkpoint: what is left beside a whole catalogue of Iceberg.
func headless(key string, there map[string]Object) bool {
	dir := path.Dir(key)
	if _, ok := there[path.Join(dir, firstVersion)]; ok || path.Base(dir) != "_delta_log" {
		return false
	}
	for other := range there {
		if path.Dir(other) == dir && strings.Contains(path.Base(other), "checkpoint") {
			return false
		}
	}
	return true
}

// readMark reads the mark of an unfinished directory.
func (r *root) readMark(ctx context.Context, mark Object) (doc unfinished, err error) {
	text := make([]byte, min(mark.Size, maxMark))
	if err := r.requests.get(ctx, r.client, mark, "", text, 0, nil); err != nil {
		return doc, err
	}
	bad := json.Unmarshal(text, &doc) != nil || doc.Stoa != unfinishedKind || len(doc.Objects) == 0
	for _, name := range doc.Objects {
		bad = bad || clean(name) != name || name == "" || strings.HasPrefix(name, "/")
	}
	if bad {
		return doc, &Error{Reason: mark.Key + " is not what stoa writes"}
	}
	return doc, nil
}

// readable reports whether a directory that has the mark can be read: if it is to have a catalogue, as soon as a whole
// one is there, of this writer or of another program, and else with the object that is written last. That all the
// others appeared before is the rule. If one of them is missing, the object that makes the directory readable was
// written late, by a request that was cut off, unless other objects show that somebody has used the table since and
// removed it.
func (doc *unfinished) readable(dir string, there map[string]Object) bool {
	shown, others, whole := false, false, true
	opens := opening(doc.Objects)
	own := map[string]bool{path.Join(dir, Unfinished): true}
	for i, name := range doc.Objects {
		key := path.Join(dir, name)
		_, ok := there[key]
		own[key] = true
		switch {
		case opens[name] || len(opens) == 0 && i == len(doc.Objects)-1:
			shown = shown || ok
		case !shows(name): // older versions tell nothing: a run may have been killed before or after them
			whole = whole && ok
		}
	}
	for key := range there {
		if within(key, dir) && !own[key] && !strings.HasSuffix(key, "/") && !strings.HasPrefix(path.Base(key), probe) {
			others, shown = true, shown || shows(key)
		}
	}
	return shown && (whole || others)
}

// shows reports whether an object makes the directory above it a table: it is the catalogue of a lake, whose readers
// know nothing of marks.
func shows(name string) bool {
	dir, base := path.Split(name)
	return path.Base(dir) == "metadata" && strings.Contains(base, ".metadata.json") ||
		path.Base(dir) == "_delta_log" && base != ""
}

// missing returns the name of the object that a directory with the mark lacks to have a second catalogue, and that the
// mark has; "" if there is none, or if other objects are gone or were added: then somebody has used the table since,
// and the catalogue would be that of an earlier state.
func (doc *unfinished) missing(dir string, there map[string]Object) (last string) {
	for key := range there {
		name, in := strings.CutPrefix(key, dir+"/")
		if in && name != Unfinished && !slices.Contains(doc.Objects, name) && !strings.HasSuffix(key, "/") &&
			!strings.HasPrefix(path.Base(key), probe) {
			return ""
		}
	}
	for _, name := range doc.Objects {
		_, ok := there[path.Join(dir, name)]
		switch _, kept := doc.Last[name]; {
		case ok:
		case kept:
			last = name
		case !shows(name) || path.Base(path.Dir(name)) == "_delta_log":
			return ""
		}
	}
	return last
}

// lacks returns the key of the object that a readable directory with the mark lacks to have the log of Delta besides
// the catalogue of Iceberg; "" if it is to have one catalogue, or has both. used: objects are gone, or were added.
func (doc *unfinished) lacks(dir string, there map[string]Object) (key string, used bool) {
	first := path.Join("_delta_log", firstVersion)
	if key = path.Join(dir, first); !slices.Contains(doc.Objects, first) || hasLog(dir, there) {
		return "", false
	}
	all := unfinished{Objects: doc.Objects, Last: map[string][]byte{first: nil}} // as if the mark had it
	return key, all.missing(dir, there) == ""
}

// hasLog reports whether a directory has a log of Delta that can be read, at least by its name.
func hasLog(dir string, there map[string]Object) bool {
	for key := range there {
		if path.Dir(key) == path.Join(dir, "_delta_log") && !headless(key, there) {
			return true
		}
	}
	return false
}

// addCatalogue writes the object that a directory lacks to have a second catalogue.
func (r *root) addCatalogue(ctx context.Context, dir, name string, doc unfinished) error {
	text := doc.Last[name]
	_, err := r.put(ctx, path.Join(dir, name), bytes.NewReader(text), int64(len(text)), Condition{Absent: true})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Unmark removes the mark of an unfinished directory at an address if the directory can be read: the process that wrote
// it must have ended. A table that is to have two catalogues gets the second one before. It reports whether it did.
func (t *Tree) Unmark(ctx context.Context, address string) (done bool, err error) {
	name, err := t.Enter(ctx, address)
	if err != nil {
		return false, err
	}
	r, key, err := t.find("change", name)
	if err != nil {
		return false, err
	}
	there, mark, err := r.marked(ctx, key)
	if err != nil || mark.Key == "" {
		return false, pathError("list", name, err)
	}
	doc, err := r.readMark(ctx, mark)
	if err != nil || !doc.readable(key, there) {
		return false, pathError("read", name, err)
	}
	if last := doc.missing(key, there); last != "" {
		if err := r.addCatalogue(ctx, key, last, doc); err != nil {
			return false, pathError("create", name+"/"+last, err)
		}
	}
	if err := r.remove(ctx, mark.Key); err != nil {
		return false, pathError("remove", name, err)
	}
	r.forgetBelow(key)
	return true, nil
}

// marked lists a directory; mark is that of an unfinished one, with an empty key if there is none.
func (r *root) marked(ctx context.Context, dir string) (there map[string]Object, mark Object, err error) {
	all, whole, err := r.listBelow(ctx, dir, maxDirKeys)
	if err != nil || !whole {
		return nil, mark, cmp.Or(err, error(errTooManyKeys))
	}
	there = map[string]Object{}
	for _, o := range all {
		if there[o.Key] = o; o.Key == path.Join(dir, Unfinished) {
			mark = o
		}
	}
	return there, mark, nil
}

// skew is the maximum difference between the clocks of a store and of its writers.
const skew = 15 * time.Minute

// maxMark is the maximum size of a mark in bytes.
const maxMark = 256 << 20

// IsUnfinished reports whether err is about a directory that is being written, or whose writing was interrupted.
func IsUnfinished(err error) bool { return errors.Is(err, errUnfinished) }
