package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stoa/cmd/stoa/internal/display"
	"stoa/store"
	"stoa/store/remote"
)

// forceFlag lets -o replace an existing file.
const forceFlag = "force"

// RegisterForce adds --force to a verb that writes a file named by -o.
func RegisterForce(cmd *cobra.Command) {
	if cmd.Flags().Lookup("output") != nil && cmd.Flags().Lookup(forceFlag) == nil {
		cmd.Flags().Bool(forceFlag, false, "replace what -o names, or the outputs in it, if it exists")
	}
}

// CheckReplace returns an error if -o names an existing file that the verb may not replace. On a terminal it asks.
func (a *App) CheckReplace(cmd *cobra.Command, args []string) error {
	force, out := cmd.Flags().Lookup(forceFlag), cmd.Flags().Lookup("output")
	if force == nil || out == nil || force.Value.String() == "true" {
		return nil
	}
	if all := cmd.Flags().Lookup("all"); all != nil && all.Value.String() == "true" {
		return nil // it writes a directory
	}
	if up := cmd.Flags().Lookup("catch-up"); up != nil && up.Value.String() == "true" {
		return nil // it keeps what is there
	}
	path := out.Value.String()
	exists, err := replaceable(cmd.Context(), path)
	if err != nil || !exists {
		return err
	}
	if err := CheckOutput(path, PlacesOf(append(named(cmd, path), args...))); err != nil { // --force would not help
		return err
	}
	if remote.Is(path) {
		path = ShownAddress(path)
	}
	if IsLake(path) {
		return &UseError{Message: path + " is a table of a lake; its snapshots, and what others have written, would " +
			"be gone", Hint: "stoa convert --catch-up SRC -o " + path + " brings it up to date, unless " +
			"others have changed its rows; --force replaces it"}
	}
	if a.Asks && !slices.Contains(args, Dash) {
		yes, err := a.ask(path + " exists; replace it?")
		if err != nil {
			return err
		}
		if yes {
			return cmd.Flags().Set(forceFlag, "true") // stoa-sql is run with it, too
		}
		return &UseError{Message: path + " exists, and is not replaced", Hint: "--force replaces it without a question"}
	}
	return &UseError{Message: path + " exists", Hint: "--force replaces it"}
}

// named returns the output again if it is also named by another flag, or by a list of roots, @FILE.
func named(cmd *cobra.Command, output string) (out []string) {
	same := func(name string) {
		if onePlace(name, output) {
			out = append(out, name)
		}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "output" || f.Name == "manifest" {
			return
		}
		for _, v := range strings.Split(f.Value.String(), ",") {
			same(v)
		}
	})
	for _, arg := range cmd.Flags().Args() {
		if list, ok := strings.CutPrefix(WithoutTable(arg), store.RootsMark); ok {
			same(list)
		}
	}
	return out
}

// replaceable reports whether writing to path would replace a file, an object or a table with snapshots. Other
// directories have rules of their own; nothing in /dev is replaced, even if the shell made /dev/stdout a file, but for
// files in the memory at /dev/shm.
func replaceable(ctx context.Context, path string) (bool, error) {
	device := strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/")
	if path == "" || path == Dash || device || strings.HasPrefix(path, "/proc/") {
		return false, nil
	}
	if remote.Is(path) {
		return objectExists(ctx, path)
	}
	st, err := os.Stat(path)
	return err == nil && (st.Mode().IsRegular() || st.IsDir() && IsLake(path)), nil
}

// Taken reports whether something is at a path, or an object at an address, which writing there would replace.
func Taken(ctx context.Context, path string) (bool, error) {
	if remote.Is(path) {
		return objectExists(ctx, path)
	}
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// objectExists reports whether there is an object at an address. It asks through a tree of its own: that of the run
// would keep the answer, and then not see what is written.
func objectExists(ctx context.Context, address string) (bool, error) {
	if strings.HasSuffix(address, "/") || CheckWritable(address) != nil { // writing to it is refused, and why is said
		return false, nil
	}
	t := remote.New(nil, RemoteOptions)
	name, err := t.Enter(ctx, address)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var info store.Info
	if err == nil {
		info, err = t.Stat(ctx, name)
	}
	switch {
	case err == nil:
		return !info.Dir, nil
	case errors.Is(err, fs.ErrNotExist), remote.IsUnfinished(err): // a directory: writing to it is refused
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return false, fmt.Errorf("whether %s exists cannot be found out (--force writes without asking): %w",
		ShownAddress(address), err)
}

// ask asks a question that is answered with yes or no, and reads one line of standard input.
func (a *App) ask(question string) (yes bool, err error) {
	a.EndWork()
	fmt.Fprintf(a.Stderr, "stoa: %s [y/N] ", display.Printable(question))
	var line []byte
	for b := make([]byte, 1); len(line) < 1024; { // no byte beyond the line is taken
		n, err := a.In.Read(b)
		if n > 0 && b[0] == '\n' {
			break
		}
		line = append(line, b[:n]...)
		if err == io.EOF {
			fmt.Fprintln(a.Stderr)
			break
		}
		if err != nil {
			return false, err
		}
	}
	answer := strings.ToLower(strings.TrimSpace(string(line)))
	return answer == "y" || answer == "yes", nil
}
