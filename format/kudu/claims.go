package kudu

import (
	"context"
	"regexp"

	"stoa/format"
)

// Names in a Kudu server's directories. Block files that a superblock names are opened; others belong to no table.
var (
	ownDir = regexp.MustCompile(`(^|/)(data|wals|tablet-meta|consensus-meta|[0-9a-f]{2}|wals/[0-9a-f]{32}[^/]*)$`)
	own    = regexp.MustCompile(`(^|/)(instance|block_manager_instance|[0-9a-f]{32}\.(data|metadata)|` +
		`(tablet-meta|consensus-meta)/[0-9a-f]{32}|wals/[0-9a-f]{32}[^/]*/(wal-\d+|index\.\d+|\.[^/]*)|` +
		`[^/]*kudutmp[^/]*)$`)
	block = regexp.MustCompile(`(^|/)([0-9a-f]{2}/){3}[0-9a-f]{16}$`)
)

// claims is format.Format.Claims.
func claims(context.Context, format.Target, format.OpenOptions) format.Claimer {
	return func(name string, dir bool) (format.Claim, error) {
		if dir && ownDir.MatchString(name) || !dir && own.MatchString(name) {
			return format.OfTable, nil
		}
		if !dir && block.MatchString(name) {
			return format.Loose, nil
		}
		return format.Foreign, nil
	}
}
