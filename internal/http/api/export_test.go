package api

// BinaryOutput is for tests.
var BinaryOutput = binaryOutput
