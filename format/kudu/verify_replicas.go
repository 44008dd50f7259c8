package kudu

import (
	"slices"

	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// replicas verifies the replicas of a tablet, and compares them.
func (v *verifier) replicas(tb *table.Tablet, ro table.Options) error {
	all := tb.Replicas()
	var undecided []*region.Finding
	if v.o.Depth != format.Quick && len(all) > 1 {
		var last []table.LastChange
		for _, r := range all {
			l, err := r.LastChange(v.ctx, !ro.NoWAL)
			if err != nil && !table.Damaged(err) {
				return err
			}
			last = append(last, l)
		}
		undecided = table.Undecided(last)
		unlike := tb.Unlike(last)
		v.Part = tb.ID
		if i := slices.IndexFunc(unlike, func(why string) bool { return why != "" }); i >= 0 {
			v.Report("kudu.replica.differs", all[i].At, "", "%s", unlike[i])
		}
		if err := v.behind(tb, ro); err != nil || v.Stopped() {
			return err
		}
	}
	for i, r := range all {
		v.decided = undecided != nil && undecided[i] == nil
		if err := v.tablet(r, ro); err != nil || v.Stopped() {
			return err
		}
		if err := v.copies(all[:i], r); err != nil || v.Stopped() {
			return err
		}
	}
	return nil
}

// behind reports, as reading the tablet does, that the replica that is read may not have the tablet's rows: it lacks
// operations of another one, or its server was evicted.
func (v *verifier) behind(all *table.Tablet, ro table.Options) error {
	tb := &table.Tablet{Replica: all.Replica, Others: all.Others}
	if err := tb.Choose(v.ctx, true, ro); err != nil {
		if table.Damaged(err) { // that is told of the replica
			return nil
		}
		return err
	}
	for _, x := range tb.Findings {
		if x.Code == "kudu.replica.behind" {
			v.Emit(x)
		}
	}
	return nil
}

// copies compares the blocks of a replica with those of the same ids in earlier copies of its server. A server gives an
// id once, so sound blocks must be the same.
func (v *verifier) copies(earlier []table.Replica, r table.Replica) error {
	for _, o := range earlier {
		if r.FS.UUID == "" || o.FS.UUID != r.FS.UUID || v.o.Depth == format.Quick {
			continue
		}
		ids := map[uint64]bool{}
		for i := range o.RowSets {
			for _, b := range o.RowSets[i].Blocks() {
				ids[b.ID] = true
			}
		}
		for i := range r.RowSets {
			for _, b := range r.RowSets[i].Blocks() {
				if !ids[b.ID] {
					continue
				}
				if err := v.met("kudu.read", v.copy(o, r, b.BlockRef)); err != nil || v.Stopped() {
					return err
				}
			}
		}
	}
	return nil
}

// copy compares a block of two copies of a server.
func (v *verifier) copy(o, r table.Replica, b meta.BlockRef) error {
	var places [2]fs.Place
	for i, x := range []table.Replica{o, r} {
		p, err := x.FS.PlaceOf(v.ctx, x.Tablet, b)
		if err != nil {
			return unlessDamage(err) // it is reported with the replica
		}
		places[i] = p
	}
	if same, err := r.FS.Same(v.ctx, places[0], places[1]); same || err != nil {
		return err
	}
	for i, x := range []table.Replica{o, r} {
		if fits, err := x.FS.Fits(v.ctx, x.Tablet, b.ID, places[i]); !fits || err != nil {
			return err
		}
	}
	v.Report("kudu.replica.differs", places[1].At, "", "block %d has other bytes in another copy of server %s, at %s, "+
		"and both are sound", b.ID, r.FS.UUID, places[0].At)
	return nil
}
