//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"stoa/internal/effort"
	"stoa/store/remote"
)

// TestHistoryKilledAtAnyRequest: whenever a run that writes a history to an address is killed, the history is there as
// a whole or not at all, to readers that know nothing of marks, too; clean leaves nothing that is neither, nor one of
// two catalogues alone, and then the same run writes it, or the table catches up. --resume finishes what can be read,
// and names the command that removes what cannot.
func TestHistoryKilledAtAnyRequest(t *testing.T) {
	for i, to := range []string{"iceberg", "delta", "iceberg,delta"} {
		t.Run(to, func(t *testing.T) {
			l := newLife(t, 60+uint64(i))
			for range 3 {
				l.load(3 + l.r.IntN(5))
			}
			h := &historyKills{life: l, to: to, args: []string{"convert", lifeTable, "--every", "segment", "--to", to,
				"-o", "s3://bucket/lake", "-q"}}
			s3, dir := emptyBucket(t)
			most := (&killer{S3: s3}).run(t, 0, false, h.args...)
			h.moments = h.momentsOf(path.Join(dir, "lake"), strings.Split(to, ",")[0])
			step := int64(effort.Step(2, 3))
			for at := most % step; at <= most; at += step {
				h.at(max(at, 1), at%2 == 0, at%4 > 1)
			}
			for at := most - 9; at <= most && strings.Contains(to, ","); at++ { // in which the catalogues appear
				for c := range 4 {
					h.at(at, c&1 == 1, c&2 == 2)
				}
			}
			if h.none == 0 || h.whole == 0 || h.moments < 4 {
				t.Errorf("%d runs left nothing, and %d a history of %d moments", h.none, h.whole, h.moments)
			}
		})
	}
}

// historyKills is a run that is killed.
type historyKills struct {
	*life
	to          string
	args        []string
	moments     int
	none, whole int // the results
}

// momentsOf returns how many moments a catalogue of the table in a directory has: snapshots of the newest metadata, or
// versions.
func (h *historyKills) momentsOf(lake, kind string) int {
	if kind == "delta" {
		versions, err := filepath.Glob(path.Join(lake, "_delta_log", "*.json"))
		if err != nil {
			h.t.Fatal(err)
		}
		return len(versions)
	}
	list, err := filepath.Glob(path.Join(lake, "metadata", "v*.metadata.json"))
	if err != nil || len(list) == 0 || len(list) > 9 { // their names sort as their numbers do
		h.t.Fatal(list, err)
	}
	var doc struct{ Snapshots []any }
	text, err := os.ReadFile(list[len(list)-1])
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return len(doc.Snapshots)
}

// at kills the run at a request. Then a resumed run goes on, or clean.
func (h *historyKills) at(at int64, answer, resume bool) {
	t := h.t
	what := fmt.Sprintf("%s, killed at request %d (answered: %t), resumed: %t", h.to, at, answer, resume)
	s3, dir := emptyBucket(t)
	k := &killer{S3: s3}
	k.run(t, at, answer, h.args...)
	asS3(t, s3)
	there := h.plain(what, path.Join(dir, "lake"))
	if resume {
		got := said("nowhere", append(h.args, "--resume")...)
		switch fine := strings.HasSuffix(got, "status: 0"); {
		case there && !fine, !fine && !strings.Contains(got, "stoa clean s3://bucket/lake --older-than 1s"):
			t.Errorf("%s: %s", what, got)
		case fine:
			h.catalogues(what, dir)
		}
	}
	said("nowhere", "clean", "s3://bucket/lake", "--older-than", "-1m")
	if h.plain(what+", cleaned", path.Join(dir, "lake")) {
		h.catalogues(what+", cleaned", dir)
	} else {
		if keys := keysOf(t, dir); len(keys) > 0 {
			t.Errorf("%s: clean leaves %q", what, keys)
		}
		do(t, h.args...)
	}
	do(t, "convert", "--catch-up", lifeTable, "-o", "s3://bucket/lake", "-q")
	do(t, "verify", "s3://bucket/lake", "-q")
	h.expect(h.rows, "s3://bucket/lake")
}

// catalogues checks that a table in a bucket has all catalogues that it is to have.
func (h *historyKills) catalogues(what, dir string) {
	for _, kind := range strings.Split(h.to, ",") {
		got := said("nowhere", "count", path.Join(dir, "lake"), "--from", kind)
		if !strings.HasSuffix(got, "status: 0") {
			h.t.Errorf("%s: no catalogue of %s: %s", what, kind, got)
		}
	}
}

// plain reports whether the files in a directory, without a mark, are a table. It must then have all rows and moments
// by each catalogue that can be read.
func (h *historyKills) plain(what, dir string) (there bool) {
	t := h.t
	lake := path.Join(t.TempDir(), "lake")
	if err := os.CopyFS(lake, os.DirFS(dir)); err != nil {
		return false // there is none
	}
	_ = os.Remove(path.Join(lake, remote.Unfinished))
	for _, kind := range strings.Split(h.to, ",") {
		got := said("nowhere", "count", lake, "--from", kind)
		if !strings.HasSuffix(got, "status: 0") {
			continue
		}
		there = true
		n := h.momentsOf(lake, kind)
		if rows := lakeRows(t, lake, "--from", kind); !maps.Equal(rows, h.rows) || n != h.moments {
			t.Errorf("%s: %d rows and %d moments of %s can be read, want %d and %d", what, len(rows), n, kind,
				len(h.rows), h.moments)
		}
	}
	if there {
		h.whole++
	} else {
		h.none++
	}
	return there
}
