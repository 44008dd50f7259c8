package kudu

// Unpack is for the tests from outside.
var Unpack = unpack
