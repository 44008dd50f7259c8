package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/format/delta/internal/log"
	"stoa/internal/check"
	"stoa/region"
	"stoa/store"
)

// Codes lists the codes of the findings of this package.
var Codes = check.Codes{
	{Code: "delta.checkpoint.doubt", Severity: region.Error, Help: "_last_checkpoint, which tells readers where the " +
		"newest checkpoint is, names a version that the log does not have, or says that the checkpoint has other " +
		"numbers of files or actions than it has, and the versions of the log do not show that the checkpoint is " +
		"right. Versions may be missing, or the checkpoint may be another one under this name."},
	{Code: "delta.checkpoint.hint", Severity: region.Warning, Help: "_last_checkpoint, which tells readers where the " +
		"newest checkpoint is, cannot be read, or contradicts the log, which is whole without it. stoa lists the log " +
		"instead. Readers that trust it fail, or fall back to that."},
}

const hintName = "_last_checkpoint"

// hint is the content of _last_checkpoint. What is null is not said.
type hint struct {
	Version *int64 `json:"version"`
	Size    *int64 `json:"size"` // actions
	Parts   *int   `json:"parts"`
	Files   *int64 `json:"numOfAddFiles"`
}

// checkpoint is what was read of the checkpoint with which a log begins.
type checkpoint struct {
	version int64 // -1: there is none
	actions int64
	files   int64 // that were added
	beside  bool  // it has sidecars: what counts as its actions is not the same for all writers
}

// findings holds _last_checkpoint against the log. Reading does not depend on it: it may be old, or missing.
func (op *versionReader) findings(ctx context.Context) []region.Finding {
	name := path.Join(op.dir, log.Dir, hintName)
	b, err := readAll(ctx, op.tree, name)
	if err != nil {
		return nil
	}
	var h hint
	code, text := "delta.checkpoint.hint", ""
	c := op.begins
	switch {
	case json.Unmarshal(b, &h) != nil || h.Version == nil:
		text = "expected an object with a version"
	case *h.Version > op.newest() || *h.Version < 0:
		code, text = "delta.checkpoint.doubt", fmt.Sprintf("it names version %d, and the log has none after %d",
			*h.Version, op.newest())
	case *h.Version > op.version || *h.Version < c.version: // an older version is read, or the hint is old
	default:
		whole := wholeCheckpoint(op.checkpoints[*h.Version])
		if whole == nil || h.Parts != nil && *h.Parts != len(whole) {
			text = fmt.Sprintf("it names a checkpoint of version %d in %s, and %d of them are there", *h.Version,
				partsText(h.Parts), len(op.checkpoints[*h.Version]))
		} else if *h.Version == c.version && !c.beside {
			code, text = op.compare(ctx, h, c)
		}
	}
	if text == "" {
		return nil
	}
	return []region.Finding{Codes.Finding(code, fault.Span{Object: name, Len: int64(len(b))}, op.dir, text)}
}

func partsText(n *int) string {
	if n == nil || *n == 1 {
		return "one file"
	}
	return fmt.Sprintf("%d files", *n)
}

// compare compares the numbers of a checkpoint with what the hint says. If they differ, what the log itself says
// decides. Two writers of a checkpoint may keep different numbers of actions about files that are no longer in use.
func (op *versionReader) compare(ctx context.Context, h hint, c checkpoint) (code, text string) {
	files := h.Files != nil && *h.Files != c.files
	if actions := h.Size != nil && *h.Size != c.actions; !files && !actions {
		return "", ""
	}
	text = fmt.Sprintf("of the checkpoint of version %d it says %s, and it has %d actions, %d of them files", c.version,
		h.says(), c.actions, c.files)
	same, known := op.replay(ctx, c)
	switch {
	case known && !same:
		return "delta.checkpoint.doubt", text + "; by the versions before it the table has other files"
	case !known && (files || h.Files == nil):
		return "delta.checkpoint.doubt", text + "; the versions before it, which would show what is right, are gone"
	}
	return "delta.checkpoint.hint", text
}

func (h hint) says() string {
	text := ""
	if h.Size != nil {
		text = fmt.Sprintf("%d actions", *h.Size)
	}
	if h.Files != nil {
		text += fmt.Sprintf(" with %d files", *h.Files)
	}
	return text
}

// replay reads the log without a checkpoint, up to its version, and reports whether the table has the same files; known
// is false if it cannot be read without.
func (op *versionReader) replay(ctx context.Context, c checkpoint) (same, known bool) {
	with, err := op.load(ctx, c.version, op.limits, op.o)
	if err != nil {
		return false, false
	}
	other := *op.logFiles
	other.checkpoints = maps.Clone(other.checkpoints)
	delete(other.checkpoints, c.version)
	without, err := other.load(ctx, c.version, op.limits, op.o)
	if err != nil {
		return false, false
	}
	live := func(s *state) map[string]bool {
		out := map[string]bool{}
		for k, a := range s.files {
			if a != nil {
				out[k] = true
			}
		}
		return out
	}
	return maps.Equal(live(with), live(without)), true
}

// readAll reads a small file.
func readAll(ctx context.Context, tree store.Tree, name string) ([]byte, error) {
	const most = 1 << 20
	src, err := tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.Size() > most {
		return nil, errors.New("it is too large")
	}
	b := make([]byte, src.Size())
	return b, format.ReadFull(ctx, src, fault.Span{Object: name, Len: src.Size()}, "", b)
}
