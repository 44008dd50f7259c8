// Package attack harms files and holds the command to the laws of docs/architecture.md, from outside: it builds
// cmd/stoa, makes tables of every format with the command's own writers (whose rows it knows), uses files that real
// systems wrote, changes bytes, structures and whole files, and runs every reading verb. The output must be the
// original rows, less those reported as lost.
//
//	make attack FOR=20m                                          # prints the seed, finds, what was tried
//	STOA_ATTACK=1m STOA_SEED=7 go test ./internal/attack -v      # the same cases again
//	STOA_ATTACK_ONLY=redfile,parquet make attack                 # only fixtures whose names begin with one of these
//	STOA_REPLAY='trevni/crc32 12 7 | flip 0 99 3 0' go test ./internal/attack -run TestReplay -v
//
// A find is printed with the line that replays it: the fixture, its seed, the seed of the case, and the shortest list
// of harms that still triggers it. STOA_KEEP=DIR keeps the files.
package attack
