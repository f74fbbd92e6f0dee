// Package ladder measures systems side by side: named scenarios, each of steps
// of a rate that rises, or of a number of streams or connections. Steps are
// interleaved, A B C A B C, and so are rounds; mock, generator, rate and
// requests are the same for all.
//
// What a step shows is kept as it is. A step whose generator was late is
// excluded, and so is all of a gateway whose accounts do not add up: it is told,
// and in no figure. A gateway that dies ends the run.
package ladder
