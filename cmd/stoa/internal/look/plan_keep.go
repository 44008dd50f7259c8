package look

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stoa/cmd/stoa/internal/cli"
)

// settled is how long a file must not have changed for its stamp to tell its state from later ones.
const settled = 2 * time.Second

// keptFlags are the flags with which a plan depends on nothing but the files below its paths. Plans with others are
// not kept.
var keptFlags = []string{"target-size", "columns", "where", "listing", "by-partition", "in-order", "unordered", "from",
	"source-opt", "segment", "segments", "bucket", "tablet", "no-wal", "no-verify", "partial", "max-page",
	"max-metadata", "max-fields", "max-depth", "memory", "quiet", "no-progress", "no-pager", "verbose", "keep",
	"output", "force"}

// keeping is a plan in a directory of plans; nil: it is not kept.
type keeping struct {
	dir, question, state string
	text                 *bytes.Buffer
}

// keptPlan returns where the plan of a command line is kept: a name for what is asked, and one for the state of all
// files below the paths, their names, sizes and times. The files are not opened.
func keptPlan(cmd *cobra.Command, dir string, args []string) *keeping {
	if dir == "" {
		return nil
	}
	question := sha256.New()
	if build, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprint(question, build.String())
	}
	fmt.Fprintf(question, "%q", args)
	ok := true
	cmd.Flags().Visit(func(f *pflag.Flag) {
		ok = ok && slices.Contains(keptFlags, f.Name)
		if f.Name != "keep" && f.Name != "output" {
			fmt.Fprintf(question, " %s=%q", f.Name, f.Value.String())
		}
	})
	state := sha256.New()
	for _, arg := range args {
		ok = ok && stateOf(state, cli.WithoutTable(arg))
	}
	if !ok {
		return nil
	}
	return &keeping{dir: dir, question: hex.EncodeToString(question.Sum(nil)[:12]),
		state: hex.EncodeToString(state.Sum(nil)[:12])}
}

// stateOf writes the state of the files at a place. It returns false where that does not determine a plan: for
// patterns, addresses and links, and for files that have just changed.
func stateOf(w io.Writer, place string) bool {
	recent := time.Now().Add(-settled)
	return filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() || info.ModTime().After(recent) {
			return fs.ErrInvalid
		}
		size := info.Size()
		if info.IsDir() {
			size = 0
		}
		fmt.Fprintf(w, "%q %d %d\n", path, size, info.ModTime().UnixNano())
		return nil
	}) == nil
}

func (k *keeping) name() string { return filepath.Join(k.dir, k.question+"-"+k.state+".jsonl") }

// read returns the plan that is kept, if it is complete.
func (k *keeping) read() ([]byte, bool) {
	if k == nil {
		return nil, false
	}
	text, err := os.ReadFile(k.name())
	last := text[bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n')+1:]
	return text, err == nil && bytes.HasPrefix(last, []byte(`{"end":true,`)) && bytes.HasSuffix(last, []byte("}\n"))
}

// tee returns a writer that keeps what is written to w.
func (k *keeping) tee(w io.Writer) io.Writer {
	if k == nil {
		return w
	}
	k.text = &bytes.Buffer{}
	return io.MultiWriter(w, k.text)
}

// write keeps the plan, in place of those of earlier states. That it cannot be kept is no error.
func (k *keeping) write() {
	if k == nil || os.MkdirAll(k.dir, 0o777) != nil {
		return
	}
	tmp, err := os.CreateTemp(k.dir, ".plan-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(k.text.Bytes())
	if closed := tmp.Close(); err != nil || closed != nil || os.Rename(tmp.Name(), k.name()) != nil {
		os.Remove(tmp.Name())
		return
	}
	earlier, _ := filepath.Glob(filepath.Join(k.dir, k.question+"-*.jsonl"))
	for _, e := range earlier {
		if !strings.HasSuffix(e, "-"+k.state+".jsonl") {
			os.Remove(e)
		}
	}
}
