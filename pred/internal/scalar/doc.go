// Package scalar evaluates the scalar expressions of a predicate: arithmetic, functions, casts, comparisons of any
// two of them. A Node is an expression of a known type. It is made by the constructors here, which check the types
// of its operands, and evaluated a block of rows at a time, each node over the whole block.
//
// Every value may be null, and logic has three values. What may fail for a row (an overflow, a cast of a text that
// is no number) fails only if the row is asked for: not if it is null, another term of "and" excludes it, or it
// takes another branch of a case.
package scalar
