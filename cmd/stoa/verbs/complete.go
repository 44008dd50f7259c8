package verbs

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"stoa"
	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/config"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
	"stoa/pred"
	"stoa/store"
	"stoa/store/remote"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// How long a completion may take, and how many requests it may send.
const (
	completionTime     = 3 * time.Second
	completionRequests = 200
)

// offerCompletions registers the completions of flags with cobra, which keeps them, and with them everything a command
// line refers to, as long as the process lives; so this is done only when a shell asks for completions.
func offerCompletions(a *cli.App, cmd *cobra.Command) {
	c := &completer{a}
	byFlag := map[string]cobra.CompletionFunc{"where": c.where, "set": c.set, "opt": c.writing, "source-opt": c.reading,
		"key": c.columns, "manifest": c.paths, "output": c.paths}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if x, ok := f.Value.(*cli.Completed); ok {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, x.How)
		} else if how := byFlag[f.Name]; how != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, how)
		}
	})
	if cmd.HasParent() && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = c.paths
	}
	for _, below := range cmd.Commands() {
		offerCompletions(a, below)
	}
}

// completer completes words of a command line. Errors are no completions.
type completer struct{ a *cli.App }

// session returns a context for one completion, with the user's configuration and without messages.
func (c *completer) session(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	c.a.Quiet = true
	if c.a.UserConfig && c.a.Config == nil {
		c.a.Config, _ = config.Load() // an error is reported by the verb itself
	}
	c.a.Remote().Limit(completionRequests)
	return context.WithTimeout(ctx, completionTime)
}

func (c *completer) options() stoa.OpenOptions {
	return stoa.OpenOptions{Formats: c.a.Formats, Tree: store.Roots(cli.Tree{A: c.a})}
}

// paths completes named places, what is at an address, and the tables of a place; files are completed by the shell.
func (c *completer) paths(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := c.session(cmd)
	defer cancel()
	name, isPlace := strings.CutPrefix(typed, config.Scheme)
	if isPlace && !strings.ContainsAny(name, "/#") {
		var out []string
		for _, p := range c.a.Config.Places() {
			out = append(out, config.Scheme+p)
		}
		return out, inPart
	}
	full, err := c.a.Config.Expand(typed)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	switch i := len(cli.WithoutTable(full)); {
	case i < len(full):
		found = c.tables(ctx, full[:i])
	case remote.Is(full):
		found = c.below(ctx, full)
	case isPlace:
		found = c.local(ctx, full)
	default:
		return nil, cobra.ShellCompDirectiveDefault
	}
	var out []string
	for _, f := range found {
		if rest, ok := strings.CutPrefix(f, full); ok {
			out = append(out, typed+rest)
		}
	}
	if strings.Contains(full, "#") {
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	return out, inPart
}

// tables returns PLACE#TABLE of every table of a place.
func (c *completer) tables(ctx context.Context, place string) (out []string) {
	at := []string{place}
	if c.a.Enter(ctx, at) != nil {
		return nil
	}
	o := c.options()
	for e, err := range stoa.List(ctx, at[0], o) {
		if ctx.Err() != nil {
			break
		}
		if err != nil || e.Table == "" {
			continue
		}
		name, _ := stoa.Named(e, o)
		if rest, ok := strings.CutPrefix(name, at[0]); ok {
			out = append(out, place+rest)
		}
	}
	return out
}

// below returns the files and directories at an address whose last name is incomplete.
func (c *completer) below(ctx context.Context, address string) []string {
	dir := address[:strings.LastIndexByte(address, '/')+1]
	if strings.HasSuffix(dir, "://") { // of buckets and hosts there is no list
		return nil
	}
	at := []string{dir}
	if c.a.Enter(ctx, at) != nil {
		return nil
	}
	return c.list(ctx, strings.TrimRight(at[0], "/"), dir)
}

func (c *completer) local(ctx context.Context, name string) []string {
	dir := name[:strings.LastIndexByte(name, '/')+1]
	return c.list(ctx, strings.TrimRight(dir, "/"), dir)
}

// list returns the names in dir after a prefix, directories with a slash.
func (c *completer) list(ctx context.Context, dir, prefix string) (out []string) {
	for info, err := range (cli.Tree{A: c.a}).List(ctx, dir) {
		if err != nil || ctx.Err() != nil {
			break
		}
		name := prefix + path.Base(info.Name)
		if info.Dir {
			name += "/"
		}
		out = append(out, name)
	}
	return out
}

// names returns the columns of the first source.
func (c *completer) names(cmd *cobra.Command, args []string) (out []string) {
	if len(args) == 0 || args[0] == cli.Dash {
		return nil
	}
	ctx, cancel := c.session(cmd)
	defer cancel()
	at, err := c.a.Config.Expand(args[0])
	paths := []string{at}
	if err != nil || c.a.Enter(ctx, paths) != nil {
		return nil
	}
	o := c.options()
	if f := cmd.Flag("from"); f != nil {
		o.From = f.Value.String()
	}
	t, err := source.OpenAll(c.a, ctx, paths, o)
	if err != nil {
		return nil
	}
	defer t.Close()
	for _, f := range t.Schema().Fields() {
		out = append(out, pred.JoinPath(f.Name))
	}
	return out
}

const inPart = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace

// where completes the last word of a predicate, if it may be a column.
func (c *completer) where(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.Count(typed, "'")%2 == 1 { // in a text
		return nil, inPart
	}
	head := typed[:strings.LastIndexAny(typed, " (,=<>!+-*/%|")+1]
	var out []string
	for _, n := range c.names(cmd, args) {
		out = append(out, head+n)
	}
	return out, inPart
}

func (c *completer) set(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(typed, "=") {
		return nil, inPart
	}
	var out []string
	for _, n := range c.names(cmd, args) {
		out = append(out, n+"=")
	}
	return out, inPart
}

// columns completes the columns of merge --key; get --key has values, of which there is no list.
func (c *completer) columns(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if cmd.Name() != "merge" {
		return nil, inPart
	}
	head := typed[:strings.LastIndexByte(typed, ',')+1]
	var out []string
	for _, n := range c.names(cmd, args) {
		out = append(out, head+n)
	}
	return out, inPart
}

// writing completes KEY=VALUE of the format that is written.
func (c *completer) writing(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var f *format.Format
	if to := cmd.Flag("to"); to != nil && to.Value.String() != "" {
		f = c.a.Format(to.Value.String())
	} else if out := cmd.Flag("output"); out != nil {
		f = stoa.ByExtension(c.a.Formats, out.Value.String())
	}
	if f == nil {
		return nil, inPart
	}
	return keyValues(f.WriteKeys, typed), inPart
}

// reading completes KEY=VALUE of the format of the first source.
func (c *completer) reading(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := c.session(cmd)
	defer cancel()
	var f *format.Format
	if from := cmd.Flag("from"); from != nil && from.Value.String() != "" {
		f = c.a.Format(from.Value.String())
	} else if len(args) > 0 {
		at, err := c.a.Config.Expand(args[len(args)-1]) // of load: not the table
		paths := []string{cli.WithoutTable(at)}
		if err != nil || c.a.Enter(ctx, paths) != nil {
			return nil, inPart
		}
		o := c.options()
		f, _ = stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: paths[0]}, o)
	}
	if f == nil {
		return nil, inPart
	}
	return keyValues(f.ReadKeys, typed), inPart
}

// keyValues returns keys or, after the =, the values of a key that has a list of them.
func keyValues(keys []format.OptionKey, typed string) (out []string) {
	key, _, hasValue := strings.Cut(typed, "=")
	for _, k := range keys {
		if !hasValue {
			out = append(out, k.Name+"=")
			continue
		}
		described := func(r rune) bool { return 'A' <= r && r <= 'Z' || r == '[' }
		if k.Name != key || strings.ContainsFunc(k.Values, described) {
			continue // what is in capitals stands for something
		}
		for v := range strings.SplitSeq(k.Values, ", ") {
			out = append(out, key+"="+v)
		}
	}
	return out
}

// topics completes the verbs and topics of help.
func (c *completer) topics(_ *cobra.Command, args []string, _ string) (out []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, v := range c.a.Verbs {
		out = append(out, v.Name()+"\t"+v.Short)
	}
	return slices.Concat(out, about.Topics()), cobra.ShellCompDirectiveNoFileComp
}
