package trevni

// What the tests of the other package need of this one.
var (
	PackLevels   = packLevels[uint32]
	UnpackLevels = unpackLevels[uint32]
)
