package about

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/store/remote"

	"github.com/spf13/cobra"
)

// sample is a golden file or directory that demo writes, with its origin.
type sample struct{ To, From, what string }

// Samples are the contents of demo.br; TestDemoSamples compares it with the golden files.
var Samples = []sample{
	{"kudu", "format/kudu/testdata/history", "a data directory of Apache Kudu 1.18.1: a table with updates and " +
		"deletes (its log is not in the sample, and stoa says so)"},
	{"carbon/managed_del", "corpus/carbon/2.3.0/managed/managed_del",
		"a table of Apache CarbonData 2.3.0, written by Spark: three loads, deletes, an update"},
	{"key.cfile", "corpus/kudu/1.18.1/key_int32/k.ck.cfile",
		"a column file of Apache Kudu 1.18.1: the first key column of a table"},
	{"flat.red", "corpus/redfile/red1/flat_pages.red",
		"a RedFile that redelm wrote in February 2013, the month before it became Parquet"},
	{"primitives.trv", "corpus/trevni/v1.12.2/avro_primitives.trv", "a Trevni file of Apache Avro 1.12.2"},
	{"dremel.trv", "corpus/trevni/dialects/wiki_dremel.trv",
		"a Trevni file in the wiki page's dialect, which no known program wrote: made for stoa, with the " +
			"records of the Dremel paper"},
}

// Demo is the samples' files, compressed with Brotli: before each is a line with its size in bytes and its name. A ZIP
// archive would be a fifth larger, and its reader 50 kB of code that nothing else uses.
//
//go:embed demo.br
var Demo []byte

// harm is the damage that --damage does to a copy of a sample.
type harm struct {
	To, from string
	off      int // the byte in which a bit is flipped, or where the file is truncated
	cut      bool
	what     string
}

var Harms = []harm{
	{"damaged/key.cfile", "key.cfile", 700, false, "one bit of a data block is flipped"},
	{"damaged/cut.cfile", "key.cfile", 1500, true, "the file ends in the middle: its footer and indexes are gone"},
	{"damaged/primitives.trv", "primitives.trv", 2000, false, "one bit of a column is flipped"},
}

// Trial is a command to try, with a description; status is its exit status.
type Trial struct {
	args   string // %s is the directory
	what   string
	Status int
}

var Trials = []Trial{
	{"head %s/kudu#d_major", "the first rows of a Kudu table, without Kudu", 0},
	{"cat %s/carbon/managed_del --where \"id < 5\"", "a CarbonData table, with its deletes applied", 0},
	{"convert %s/flat.red -o %s/flat.parquet", "RedFile to Parquet, which descends from it", 0},
	{"diff %s/flat.red %s/flat.parquet", "nothing was lost", 0},
	{"get %s/key.cfile --key 63016500", "one row, through the file's own index", 0},
}

var DamagedTrials = []Trial{
	{"verify %s/damaged", "what is damaged, and where", cli.StatusDamage},
	{"cat %s/damaged/key.cfile --damaged skip-rows -f csv", "the rows that are whole", cli.StatusDamage},
	{"recover %s/damaged/cut.cfile -o %s/saved.parquet --source-opt type=int32",
		"a file without footer and indexes, recovered", cli.StatusDamage},
	{"diff %s/key.cfile %s/saved.parquet --on value", "what was lost", cli.StatusDamage},
	{"finding cfile.block.checksum", "what a finding means", 0},
}

// Command returns the trial's command line for a directory.
func (t Trial) Command(dir string) string {
	return "stoa " + strings.ReplaceAll(t.args, "%s", dir)
}

func DemoCmd(a *cli.App) *cobra.Command {
	var damage bool
	var form string
	cmd := &cobra.Command{
		Use:   "demo DIR",
		Short: "Write sample files, and print commands to try on them",
		Long: `Write sample files to DIR, which must be empty or not exist, and print five commands to try
on them. The files are small, and real systems wrote all but one of them.
With --damage, also write damaged copies, and print five more commands.`,
		Example: "  stoa demo try\n  stoa demo broken --damage",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return &cli.UseError{Message: "demo needs a directory to write to", Hint: "for example: stoa demo try"}
			}
			if remote.Is(args[0]) {
				return cli.WrongUse("demo writes to a disk, not to %s", cli.ShownAddress(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(output.SummaryForms, form) {
				return &cli.UseError{Message: "-f " + form + " is not a form of the summary",
					Hint: "the forms are text and json"}
			}
			dir := strings.TrimRight(filepath.ToSlash(args[0]), "/")
			if err := writeDemo(args[0], damage); err != nil {
				return err
			}
			if form == "json" {
				return output.WriteSummary(a, demoOf(dir, damage))
			}
			_, err := io.WriteString(a.Stdout, demoText(dir, damage))
			return err
		},
	}
	cmd.Flags().BoolVar(&damage, "damage", false, "also write damaged copies, for verify and recover")
	cmd.Flags().StringVarP(&form, "format", "f", "text", "say what was written as `FORM`: text or json")
	cli.Complete(cmd, "format", func() []string { return output.SummaryForms })
	return cmd
}

// writeDemo writes the samples. It does not overwrite existing files.
func writeDemo(dir string, damage bool) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return &cli.UseError{Message: dir + " is not empty", Hint: "stoa demo writes to a directory of its own"}
	}
	for name, b := range DemoFiles() {
		if err := writeNew(filepath.Join(dir, filepath.FromSlash(name)), b); err != nil {
			return err
		}
	}
	var about strings.Builder
	about.WriteString("Files as their programs wrote them (dremel.trv was made for stoa):\n\n")
	for _, s := range Samples {
		fmt.Fprintf(&about, "%s: %s\n", s.To, s.what)
	}
	if damage {
		about.WriteString("\nCopies that stoa demo has damaged:\n\n")
		for _, h := range Harms {
			b, err := os.ReadFile(filepath.Join(dir, h.from))
			if err != nil {
				return err
			}
			if err := writeNew(filepath.Join(dir, h.To), h.do(b)); err != nil {
				return err
			}
			fmt.Fprintf(&about, "%s: %s\n", h.To, h.what)
		}
	}
	return writeNew(filepath.Join(dir, "SOURCES.txt"), []byte(about.String()))
}

// DemoFiles yields the names and the contents of the samples' files.
func DemoFiles() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for rest := unpacked(Demo); len(rest) > 0; {
			head, after, _ := bytes.Cut(rest, []byte("\n"))
			size, name, _ := strings.Cut(string(head), " ")
			n, err := strconv.Atoi(size)
			if err != nil || n > len(after) {
				panic("demo.br: " + string(head))
			}
			if !yield(name, after[:n]) {
				return
			}
			rest = after[n:]
		}
	}
}

// do returns a damaged copy of b.
func (h harm) do(b []byte) []byte {
	b = bytes.Clone(b)
	if h.cut {
		return b[:h.off]
	}
	b[h.off] ^= 0x10
	return b
}

func writeNew(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// demoDoc is what demo -f json prints.
type demoDoc struct {
	Output  string        `json:"output"`
	Samples []demoSample  `json:"samples"`
	Try     []demoCommand `json:"try"`
}

type demoSample struct {
	Name    string `json:"name"`
	What    string `json:"what"`
	Damaged bool   `json:"damaged"`
}

type demoCommand struct {
	Command string `json:"command"`
	What    string `json:"what"`
	Status  int    `json:"status"`
}

func demoOf(dir string, damage bool) demoDoc {
	d := demoDoc{Output: dir}
	for _, s := range Samples {
		d.Samples = append(d.Samples, demoSample{dir + "/" + s.To, s.what, false})
	}
	trials := Trials
	if damage {
		for _, h := range Harms {
			d.Samples = append(d.Samples, demoSample{dir + "/" + h.To, h.what, true})
		}
		trials = append(slices.Clone(trials), DamagedTrials...)
	}
	for _, t := range trials {
		d.Try = append(d.Try, demoCommand{t.Command(display.ShellWord(dir)), t.what, t.Status})
	}
	return d
}

// demoText says what was written and suggests commands to try.
func demoText(dir string, damage bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s holds small files that the real systems wrote (SOURCES.txt says which).\n\nTry\n",
		display.OneLine(dir))
	print := func(ts []Trial) {
		for _, t := range ts {
			fmt.Fprintf(&b, "  %s\n      # %s\n", t.Command(display.ShellWord(dir)), t.what)
		}
	}
	print(Trials)
	if damage {
		fmt.Fprintf(&b, "\nand, on the damaged copies in %s/damaged (status 3 means damage)\n", display.OneLine(dir))
		print(DamagedTrials)
	} else {
		b.WriteString("\nstoa demo DIR --damage writes damaged ones, too, for verify and recover.\n")
	}
	return b.String()
}
