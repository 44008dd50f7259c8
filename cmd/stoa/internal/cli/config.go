package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stoa/cmd/stoa/internal/config"
	"stoa/store/remote"
)

// pathFlags are the flags whose values may be in a named place. --attach and --table have NAME= before it.
var pathFlags = []string{"output", "manifest", "attach", "table", "schema", "seal", "wal-dir", "meta-dir", "data-dirs"}

// patient are the verbs that run although the configuration is wrong.
var patient = []string{"help", "version", "completion", "stoa"}

// Configure applies the user's configuration, if the program reads one: the defaults of flags that are not given, and
// the names of places in arguments, which it replaces in place.
func (a *App) Configure(cmd *cobra.Command, args []string) error {
	if a.UserConfig {
		c, err := config.Load()
		if err != nil && !slices.Contains(patient, cmd.Name()) {
			return &UseError{Message: err.Error(), Hint: "stoa help config -v explains the file"}
		}
		a.Config = c
	}
	for _, name := range config.Names() {
		value, ok := a.Config.Default(name)
		f := cmd.Flags().Lookup(name)
		if !ok || f == nil || f.Changed {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return fmt.Errorf("%s: %s = %q: %w", a.Config.File, name, value, err)
		}
	}
	if display, ok := a.Config.Default("display"); ok {
		a.Display = display
	}
	if colour, ok := a.Config.Default("colour"); ok && colour == "false" {
		a.plain = true
	}
	if err := a.expandPlaces(cmd, args); err != nil {
		return err
	}
	return knownAddresses(cmd, args)
}

// knownAddresses returns an error if a path is an address of a scheme for which there is no client.
func knownAddresses(cmd *cobra.Command, args []string) (err error) {
	check := func(paths ...string) {
		for _, p := range paths {
			if _, path, ok := strings.Cut(p, "="); ok && remote.Unknown(path) != nil {
				p = path
			}
			err = cmp.Or(err, remote.Unknown(p))
		}
	}
	check(args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(pathFlags, f.Name) && f.Name != "split" {
			return
		}
		if many, ok := f.Value.(pflag.SliceValue); ok {
			check(many.GetSlice()...)
		}
		check(f.Value.String())
	})
	return err
}

func (a *App) expandPlaces(cmd *cobra.Command, args []string) (err error) {
	expand := func(path string) string {
		out, e := a.Config.Expand(path)
		if e != nil && err == nil {
			err = &UseError{Message: e.Error(), Hint: "stoa config lists the places"}
		}
		return out
	}
	for i := range args {
		args[i] = expand(args[i])
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(pathFlags, f.Name) || !strings.Contains(f.Value.String(), config.Scheme) {
			return
		}
		value := f.Value
		if c, ok := value.(*Completed); ok {
			value = c.Value
		}
		expandValue := func(v string) string {
			name, path, named := strings.Cut(v, "=")
			if named && strings.HasPrefix(path, config.Scheme) {
				return name + "=" + expand(path)
			}
			return expand(v)
		}
		if many, ok := value.(pflag.SliceValue); ok {
			all := many.GetSlice()
			for i := range all {
				all[i] = expandValue(all[i])
			}
			_ = many.Replace(all) // texts are accepted
			return
		}
		_ = f.Value.Set(expandValue(value.String()))
	})
	return err
}
