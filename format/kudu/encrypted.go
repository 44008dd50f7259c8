package kudu

import (
	"context"
	"iter"

	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/region"
)

// keysOption is the name of the option with the keys of encrypted servers. Every function of the format that reads
// files is given a tree that decrypts them transparently.
const keysOption = "encryption-key"

// plain returns the target with encrypted files decrypted, if the options have keys.
func plain(ctx context.Context, tg format.Target, opts map[string]string) (format.Target, error) {
	tree, err := fs.Decrypted(ctx, tg.Tree, opts[keysOption])
	if err == nil {
		tg.Tree = tree
	}
	return tg, err
}

func plainList(of func(context.Context, format.Target) iter.Seq2[format.Entry, error]) func(context.Context,
	format.Target) iter.Seq2[format.Entry, error] {
	return func(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
		tg, err := plain(ctx, tg, tg.Opts)
		if err != nil {
			return func(yield func(format.Entry, error) bool) { yield(format.Entry{}, err) }
		}
		return of(ctx, tg)
	}
}

func plainOpen(of func(context.Context, format.Target, format.OpenOptions) (format.Reader, error)) func(context.Context,
	format.Target, format.OpenOptions) (format.Reader, error) {
	return func(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
		tg, err := plain(ctx, tg, o.Opts)
		if err != nil {
			return nil, err
		}
		return of(ctx, tg, o)
	}
}

func plainRecover(of func(context.Context, format.Target, format.OpenOptions) (format.Reader, []region.Finding,
	error)) func(context.Context, format.Target, format.OpenOptions) (format.Reader, []region.Finding, error) {
	return func(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
		tg, err := plain(ctx, tg, o.Opts)
		if err != nil {
			return nil, nil, err
		}
		return of(ctx, tg, o)
	}
}

func plainDescribe(of func(context.Context, format.Target, format.DescribeOptions) iter.Seq2[region.Node,
	error]) func(context.Context, format.Target, format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
		tg, err := plain(ctx, tg, o.Opts)
		if err != nil {
			return func(yield func(region.Node, error) bool) { yield(region.Node{}, err) }
		}
		return of(ctx, tg, o)
	}
}

func plainListing(of func(context.Context, format.Target, format.OpenOptions, func([]string)) ([]region.Finding,
	error)) func(context.Context, format.Target, format.OpenOptions, func([]string)) ([]region.Finding, error) {
	return func(ctx context.Context, tg format.Target, o format.OpenOptions, add func([]string)) ([]region.Finding,
		error) {
		tg, err := plain(ctx, tg, o.Opts)
		if err != nil {
			return nil, err
		}
		return of(ctx, tg, o, add)
	}
}
