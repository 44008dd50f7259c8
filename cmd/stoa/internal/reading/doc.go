// Package reading is what all verbs that read rows do: the damage policy, the manifest of what was lost,
// findings in words.
package reading
