package kudufs

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/internal/pb"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// A mended server has the tablets that it had: each as it was, with damaged blocks replaced by those of twins; or, if
// that is not possible, a copy of another server's replica, as Kudu itself copies tablets: superblock, blocks and log.
// So its history and its place in the Raft log are kept. Blocks get new ids, and lie in one data directory of the same
// block manager; a server with RocksDB's gets the file block manager.

// mender mends the servers of a place.
type mender struct {
	o       format.MendOptions
	s       *cluster.Servers
	tree    store.Tree
	tablets map[string]*table.Tablet
}

// mended is a tablet as it is to be written.
type mended struct {
	format.MendedPart
	replica   table.Replica
	places    []fs.Place // of its blocks, in the order of the superblock
	consensus []byte     // message; nil: none
}

// mend is format.Format.Mend.
func mend(ctx context.Context, tg format.Target, o format.MendOptions) (out []format.MendedServer, err error) {
	ro, err := table.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	if tg.Tree, err = fs.Decrypted(ctx, tg.Tree, o.Opts["encryption-key"]); err != nil {
		return nil, err
	}
	ro.At, ro.Partial = table.Latest, true
	m := &mender{o: o, tree: tg.Tree, tablets: map[string]*table.Tablet{}}
	if m.s, err = cluster.Open(ctx, tg, o.OpenOptions, ro); err != nil {
		return nil, err
	}
	for _, tb := range m.s.Tablets {
		if err := tb.Choose(ctx, true, ro); err != nil {
			return nil, err
		}
		m.tablets[tb.ID] = tb
	}
	servers := map[string][]*fs.FS{} // by UUID, with copies of one server together
	for _, f := range m.s.All {
		servers[f.UUID] = append(servers[f.UUID], f)
	}
	for _, uuid := range slices.Sorted(maps.Keys(servers)) {
		switch {
		case o.Server != "" && !strings.HasPrefix(uuid, o.Server):
			continue
		case uuid == "":
			out = append(out, format.MendedServer{Unknown: []string{fmt.Sprintf("%s: nothing there says which server "+
				"it belongs to", servers[uuid][0].MetaDir)}})
			continue
		}
		one, err := m.server(ctx, uuid, servers[uuid], ro)
		if err != nil {
			return nil, err
		}
		if one != nil {
			out = append(out, *one)
		}
	}
	if o.Server != "" && len(out) == 0 {
		return nil, fault.Invalidf("there is no server %s here; servers are %s", o.Server,
			strings.Join(slices.Sorted(maps.Keys(servers)), ", "))
	}
	return out, nil
}

// server writes a server, unless there is nothing to mend.
func (m *mender) server(ctx context.Context, uuid string, dirs []*fs.FS, ro table.Options) (*format.MendedServer,
	error) {
	out := &format.MendedServer{Server: uuid, Dir: uuid}
	var parts []*mended
	intact := m.intact(dirs)
	for _, id := range m.tabletsOf(ctx, uuid, dirs) {
		x, why, err := m.tablet(ctx, uuid, id, ro)
		switch {
		case err != nil:
			return nil, err
		case x == nil:
			out.Unknown = append(out.Unknown, id+": "+why)
			continue
		}
		intact = intact && !x.Mended()
		parts, out.Parts = append(parts, x), append(out.Parts, x.MendedPart)
	}
	switch {
	case intact && len(out.Unknown) == 0 && m.o.Server == "":
		return nil, nil
	case len(parts) == 0: // a server without tablets is made by Kudu itself
		out.Dir = ""
		return out, nil
	}
	v, err := newServer(ctx, m.o.Sink, uuid, uuid, managerOf(dirs), time.Now())
	if err != nil {
		return nil, err
	}
	defer v.abort()
	for _, x := range parts {
		if err := m.write(ctx, v, x); err != nil {
			return nil, err
		}
	}
	return out, v.finish(ctx)
}

// managerOf returns the block manager of a server's directories, so that it starts with the flags that it had.
func managerOf(dirs []*fs.FS) string {
	for _, f := range dirs {
		if f.BlockManager == fs.LogManager {
			return fs.LogManager
		}
	}
	return fs.FileManager
}

// intact reports whether nothing is known to be wrong with the directories themselves.
func (m *mender) intact(dirs []*fs.FS) bool {
	for _, f := range dirs {
		if !slices.ContainsFunc(f.Findings, func(x region.Finding) bool {
			return x.Severity >= region.Error || x.Code == "kudu.instance.missing" // no server starts without it
		}) {
			return true // there may be copies, of which one is intact
		}
	}
	return false
}

// tabletsOf returns the ids of the tablets that the server had: those of which it has anything, and those of whose
// newest known configuration it is a peer.
func (m *mender) tabletsOf(ctx context.Context, uuid string, dirs []*fs.FS) []string {
	ids := map[string]bool{}
	for _, f := range dirs {
		for _, dir := range []string{path.Join(f.MetaDir, fs.TabletMetaDir), path.Join(f.MetaDir, fs.ConsensusDir),
			path.Join(f.WALDir, fs.WalsDir)} {
			for info, err := range f.Tree.List(ctx, dir) {
				if err != nil {
					break // the finding about it is known
				}
				if id := strings.TrimSuffix(path.Base(info.Name), fs.RecoverySuffix); fs.IsUUID(id) {
					ids[id] = true
				}
			}
		}
	}
	for id, tb := range m.tablets {
		if c := newestConfig(tb); c != nil && hasPeer(c, uuid) {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// newestConfig returns the consensus metadata with the newest configuration that a replica of a tablet has.
func newestConfig(tb *table.Tablet) (out *meta.Consensus) {
	for _, r := range tb.Replicas() {
		if c := r.Consensus; c != nil && (out == nil || c.Index > out.Index) {
			out = c
		}
	}
	return out
}

func hasPeer(c *meta.Consensus, uuid string) bool {
	return slices.ContainsFunc(c.Peers, func(p meta.Peer) bool { return p.UUID == uuid })
}

// tablet chooses the replica of a tablet that the server gets: its own, if that can be made whole, else the best that
// can. Without one, why says what is wrong with the server's own, or the best.
func (m *mender) tablet(ctx context.Context, uuid, id string, ro table.Options) (x *mended, why string, err error) {
	tb := m.tablets[id]
	if tb == nil {
		return nil, "no server here has its superblock", nil
	}
	all := tb.Replicas()
	sorted.StablyBy(all, func(a, b table.Replica) int {
		switch own := a.FS.UUID == uuid; {
		case own == (b.FS.UUID == uuid):
			return 0
		case own:
			return -1
		}
		return 1
	})
	for i, r := range all {
		own := r.FS.UUID == uuid
		if own && r.State == meta.TabletTombstoned {
			x = &mended{replica: r}
			x.MendedPart = format.MendedPart{Table: r.Table, ID: id, From: r.FS.MetaDir}
			x.consensus = m.consensus(tb, r, uuid)
			return x, "", nil
		}
		others := append(slices.Clone(all[:i]), all[i+1:]...)
		places, twins, reason, err := m.whole(ctx, &table.Tablet{Replica: r, Others: others}, ro)
		if err != nil {
			return nil, "", err
		}
		if reason != "" {
			why = cmp.Or(why, reason)
			continue
		}
		if !own {
			why = cmp.Or(why, "the server has no superblock of it")
		} else {
			why = ""
		}
		x = &mended{replica: r, places: places, consensus: m.consensus(tb, r, uuid)}
		if x.consensus == nil {
			return nil, "no replica of it has consensus metadata, so its peers are not known", nil
		}
		x.MendedPart = format.MendedPart{Table: r.Table, ID: id, From: r.FS.MetaDir, Other: !own, Blocks: len(places),
			Twins: twins, Why: why}
		return x, "", nil
	}
	return nil, cmp.Or(why, "no replica of it is whole"), nil
}

// whole finds intact bytes for each block of a replica, and looks at its log. reason says why it is not whole.
func (m *mender) whole(ctx context.Context, tb *table.Tablet, ro table.Options) (places []fs.Place, twins int,
	reason string, err error) {
	if !tb.HasData() || tb.State != meta.TabletReady {
		return nil, 0, "its replica is " + tb.State.String(), nil
	}
	if _, holes, err := tb.LastTime(ctx, true); err != nil || holes > 0 {
		return nil, 0, "its log is gone, or lacks operations", err
	}
	t, err := table.New(m.tree, []*table.Tablet{tb}, m.o.OpenOptions, ro)
	if err != nil {
		return nil, 0, err.Error(), nil
	}
	for i := range tb.RowSets {
		copies, err := tb.CopiesOf(ctx, t, i)
		if err != nil {
			return nil, 0, "", err
		}
		for k, b := range tb.RowSets[i].Blocks() {
			found := false
			for _, p := range copies[k] {
				if !p.Usable() {
					continue
				}
				sound, err := m.sound(ctx, b, p)
				if err != nil {
					return nil, 0, "", err
				}
				if found = sound; found {
					if own, err := tb.FS.PlaceOf(ctx, tb.Tablet, b.BlockRef); err != nil || own.At != p.At {
						twins++
					}
					places = append(places, p)
					break
				}
			}
			if !found {
				more := ""
				if b.Idle() {
					more = "; no row is lost with it, and rescue --to kudu-fs makes it again"
				}
				return nil, 0, fmt.Sprintf("of table %s, block %d (%s) of rowset %d is damaged or missing, and has no "+
					"intact copy%s", tb.Table, b.ID, b.Kind, tb.RowSets[i].ID, more), nil
			}
		}
	}
	return places, twins, "", nil
}

// sound reports whether a block has no error.
func (m *mender) sound(ctx context.Context, b meta.KindedBlock, p fs.Place) (bool, error) {
	o := m.o.OpenOptions
	o.Opts = map[string]string{"kind": cfileKind(b.Kind)}
	tg := format.Target{Tree: m.tree, Name: p.At.Object, At: vec.Range{From: p.At.Off, To: p.At.End()}}
	for x := range cfile.Format.Verify(ctx, tg, o) {
		if x.Severity >= region.Error {
			return false, ctx.Err()
		}
	}
	return true, ctx.Err()
}

// cfileKind returns the kind of CFile, as option kind names it, of a block in a superblock.
func cfileKind(kind string) string {
	switch kind {
	case "redo", "undo":
		return "delta"
	case "adhoc-index":
		return "index"
	}
	return kind
}

// consensus returns the consensus metadata with which a server gets a replica: the newest configuration, and at least
// the term of all replicas. The vote is the server's own.
func (m *mender) consensus(tb *table.Tablet, r table.Replica, uuid string) []byte {
	c := newestConfig(tb)
	if c == nil {
		return nil
	}
	out := *c
	out.VotedFor = ""
	known := false
	for _, x := range tb.Replicas() {
		if x.Consensus == nil {
			continue
		}
		if out.Term = max(out.Term, x.Consensus.Term); x.FS.UUID == uuid {
			known = true
		}
	}
	for _, x := range tb.Replicas() {
		if x.FS.UUID == uuid && x.Consensus != nil && x.Consensus.Term == out.Term {
			out.VotedFor = x.Consensus.VotedFor
		}
	}
	if !known && out.Term > 0 && len(out.Peers) > 1 {
		out.Term++ // it may have voted in the last term
	}
	return out.Append(nil)
}

// write writes a tablet to a server.
func (m *mender) write(ctx context.Context, v *server, x *mended) error {
	ids := make([]uint64, len(x.places))
	for i, p := range x.places {
		b, err := v.block(ctx, func(w *bufio.Writer) (int64, error) {
			return m.copyTo(ctx, w, p.At)
		})
		if err != nil {
			return err
		}
		ids[i] = b.ID
	}
	super, err := m.superblock(ctx, v, x, ids)
	if err != nil {
		return err
	}
	if err := v.container(ctx, path.Join(fs.TabletMetaDir, x.ID), "kudu.tablet.TabletSuperBlockPB",
		super); err != nil {
		return err
	}
	if x.consensus != nil {
		if err := v.container(ctx, path.Join(fs.ConsensusDir, x.ID), "kudu.consensus.ConsensusMetadataPB",
			x.consensus); err != nil {
			return err
		}
	}
	if !x.replica.HasData() {
		return nil
	}
	segments, err := x.replica.FS.LogSegments(ctx, x.ID)
	if err != nil {
		return err
	}
	for _, s := range segments {
		if err := m.copyFile(ctx, v, path.Join(fs.WalsDir, x.ID, path.Base(s.Name)), s); err != nil {
			return err
		}
	}
	return nil
}

// copyTo copies the bytes at a span.
func (m *mender) copyTo(ctx context.Context, w *bufio.Writer, at fault.Span) (int64, error) {
	src, err := m.tree.Open(ctx, at.Object)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	buf := make([]byte, min(at.Len, 1<<20))
	for off := at.Off; off < at.End(); {
		b := buf[:min(int64(len(buf)), at.End()-off)]
		part := fault.Span{Object: at.Object, Off: off, Len: int64(len(b))}
		if err := format.ReadFull(ctx, src, part, "", b); err != nil {
			return 0, err
		}
		if _, err := w.Write(b); err != nil {
			return 0, err
		}
		off += int64(len(b))
	}
	return at.Len, nil
}

// copyFile copies a whole file.
func (m *mender) copyFile(ctx context.Context, v *server, name string, s store.Info) error {
	name = path.Join(v.root, name)
	o, err := v.sink.Create(ctx, name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(o)
	n, err := m.copyTo(ctx, w, fault.Span{Object: s.Name, Len: s.Size})
	if err == nil {
		err = w.Flush()
	}
	v.bytes += n
	v.files = append(v.files, name)
	return errors.Join(err, o.Close())
}

// Fields of a TabletSuperBlockPB that are not those of another server's directories.
const (
	superOrphaned = 11 // blocks that Kudu deletes: their ids are new blocks' now
	superDirs     = 15 // DataDirGroupPB
)

// superblock returns the superblock's message with the new ids of the blocks and the data directory of v.
func (m *mender) superblock(ctx context.Context, v *server, x *mended, ids []uint64) ([]byte, error) {
	r := x.replica
	body := make([]byte, r.At.Len)
	src, err := m.tree.Open(ctx, r.At.Object)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if err := format.ReadFull(ctx, src, r.At, "", body); err != nil {
		return nil, err
	}
	k := 0
	for i := range r.RowSets {
		for _, b := range r.RowSets[i].Blocks() {
			end := b.Off + int64(b.Len) - r.At.Off // a BlockIdPB ends in the id
			if k >= len(ids) || end < 8 || end > int64(len(body)) ||
				binary.LittleEndian.Uint64(body[end-8:]) != b.ID {
				return nil, fault.Corruptf(r.At, "rowsets", "expected block %d before byte %d, found something else",
					b.ID, r.At.Off+end)
			}
			binary.LittleEndian.PutUint64(body[end-8:], ids[k])
			k++
		}
	}
	var out []byte
	c := wire.NewCursor(body, r.At, "superblock")
	for f := pb.NewReader(c); f.Next(); {
		start, field := c.Pos(), f.Field()
		if f.Unknown(); field != superOrphaned && field != superDirs {
			out = append(out, body[start:c.Pos()]...)
		}
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	return pb.AppendMessage(out, superDirs, pb.AppendString(nil, 1, v.dir)), nil
}
