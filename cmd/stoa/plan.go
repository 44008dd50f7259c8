package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/format"
)

// planEnd is the last line of a plan: a plan without it was cut.
type planEnd struct {
	End    bool   `json:"end"`
	Plan   string `json:"plan"`
	Splits int    `json:"splits"`
	Bytes  int64  `json:"bytes"`
}

func (a *app) planCmd() *cobra.Command {
	var src sourceFlags
	var sel selectFlags
	var out outputFlags
	var size string
	cmd := &cobra.Command{
		Use:   "plan PATH...",
		Short: "Cut a scan into splits that other processes can read",
		Long: `Cut a scan into splits, for a distributed engine. A line of JSON is a split: it holds everything that another process needs
to read it, but the data, which must lie at the same path there; stoa scan --split does. The splits' rows, one after the other, are those of the scan. The last line is
{"end":true,…} with the number of splits: a plan without it was cut. The status is 3 if the plan is whole, and the table is known not to be.`,
		Example: `  stoa plan table/ --target-size 256MB > splits.jsonl
  stoa plan kudu#d_major --columns id,b -o splits.jsonl`,
		Args: a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			spec, err := sel.spec()
			if err != nil {
				return err
			}
			target, err := parseSize("--target-size", size)
			if err != nil {
				return err
			}
			if args, err = lasting(args); err != nil {
				return err
			}
			t, err := src.open(ctx, a, args)
			if err != nil {
				return whole(err)
			}
			defer t.Close()
			if err := spare(out.file, t.Sources()); err != nil {
				return err
			}
			err = a.putWhole(ctx, &out, func(w io.Writer) error {
				enc := json.NewEncoder(w)
				end := planEnd{End: true, Plan: t.PlanName(spec)}
				for s, err := range t.Plan(ctx, spec, target) {
					if err != nil {
						return err
					}
					end.Splits++
					end.Bytes += s.Bytes
					if err := enc.Encode(s); err != nil {
						return err
					}
				}
				return enc.Encode(end)
			})
			return whole(a.noticed(t.Findings(), allRead(err)))
		},
	}
	sel.registerColumns(a, cmd, &src)
	sel.registerWhere(cmd)
	cmd.Flags().StringVar(&size, "target-size", "256MB", "stored bytes of a split, about: `SIZE`, such as 64MB")
	cmd.Flags().StringVarP(&out.file, "output", "o", "",
		"write to `FILE`, which appears only when it is complete (- is standard output)")
	src.register(a, cmd)
	return cmd
}

// lasting makes the paths mean the same in every directory: a split may be read in another one, and by another
// process, for which standard input and pipes are not there.
func lasting(args []string) ([]string, error) {
	out := slices.Clone(args)
	for i, arg := range args {
		place := withoutTable(arg)
		if arg == dash || isPipe(place) {
			return nil, &useError{"a plan of " + arg +
				" could be read by nobody: what comes through a pipe is not there for others",
				"write it to a file, and plan that; stoa cat reads a pipe"}
		}
		full, err := filepath.Abs(place)
		if err != nil {
			return nil, err
		}
		out[i] = full + arg[len(place):]
	}
	return out, nil
}

func (a *app) scanCmd() *cobra.Command {
	r := reading{}
	var split string
	cmd := &cobra.Command{
		Use:   "scan --split SPLIT",
		Short: "Read a split of stoa plan",
		Long: `Read a split that stoa plan made, as an Arrow stream. SPLIT is the JSON itself, a FILE that holds it, or - for standard input.
The exit status is 0 only if all of the split was written, and only then does the stream have its end mark: a reader can tell a
stream that was cut from one that ended. With status 3 the stream has its end mark, too, and the table is known not to be whole:
rows were passed over (--damaged), or it was told before. With any other status the stream is cut within a message, or empty:
1 for damage, a file that changed since it was planned or while it was read, one that is gone, and all else that could not
be read; 2 for what is no split, or not one of this version, and other wrong use.`,
		Example: `  stoa scan --split "$(sed -n 2p splits.jsonl)" | wc -l
  stoa scan --split split.json -o part.parquet`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &useError{"scan takes a split, not a path: " + args[0],
					"--split SPLIT; stoa plan makes splits, stoa cat reads all"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if r.form == "" && !r.toFile() {
				r.form = "arrow"
			}
			form, err := r.rowForm(a)
			if err != nil {
				return err
			}
			spec, err := r.spec()
			if err != nil {
				return err
			}
			s, err := a.readSplit(split)
			if err != nil {
				return err
			}
			t, err := stoa.OpenSplit(ctx, s, stoa.OpenOptions{Formats: a.formats, Tree: tree{a: a}})
			if err != nil {
				return whole(&openError{err})
			}
			defer t.Close()
			sc, err := t.Schema()
			if err != nil {
				return whole(err)
			}
			err = a.writeRows(ctx, &r.outputFlags, form, sc, t.Scan(ctx, spec))
			return whole(r.damageFlags.report(ctx, a, []string{"the split"}, t.Findings(), allRead(err)))
		},
	}
	cmd.Flags().StringVar(&split, "split", "", "the `SPLIT`: JSON, a file, or - (needed)")
	cmd.MarkFlagRequired("split")
	r.registerParallel(cmd)
	r.registerMemory(cmd)
	r.outputFlags.register(cmd, rowForms, "default: what the extension of -o says, else arrow")
	r.damageFlags.register(cmd, "fail")
	return cmd
}

// readSplit finds the split's text and parses it.
func (a *app) readSplit(arg string) (s stoa.Split, err error) {
	text := []byte(arg)
	switch {
	case arg == dash:
		text, err = io.ReadAll(io.LimitReader(a.in, 1<<28))
	case !strings.HasPrefix(strings.TrimSpace(arg), "{"):
		text, err = os.ReadFile(arg)
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, wrongUse("--split: %v", err)
	}
	if s.Version == 0 {
		return s, &useError{"--split: this is not a split",
			"a split is a line that stoa plan prints (not the last one)"}
	}
	return s, nil
}

// parseSize reads a number of bytes: 1000, 64kB, 256MB, 1GiB.
func parseSize(flag, s string) (int64, error) {
	n, ok := format.ParseSize(s)
	if !ok || n == 0 {
		return 0, &useError{flag + " " + s + " is not a size", "for example 64MB, 256MiB or 1GB"}
	}
	return n, nil
}
