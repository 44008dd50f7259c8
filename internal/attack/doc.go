// Package attack harms files and holds the command to the laws of docs/architecture.md, from outside: it builds
// cmd/stoa, makes tables of every format with the command's own writers (whose rows it knows), takes files that
// real systems wrote, changes bytes, places and files, and asks every reading verb. What comes out has to be
// what was there, less what was reported as lost.
//
//	make attack FOR=20m                                          # for as long; prints seed, finds, and what was tried
//	STOA_ATTACK=1m STOA_SEED=7 go test ./internal/attack -v      # the same cases again
//	STOA_ATTACK_ONLY=redfile,parquet make attack             # only of fixtures whose names begin so
//	STOA_REPLAY='trevni/plain 12 | flip 0 99 3' go test ./internal/attack -run TestReplay -v
//
// A find prints the line of its replay: the fixture, its seed, and the shortest list of harms that still shows
// it. STOA_KEEP=DIR keeps its files.
package attack
