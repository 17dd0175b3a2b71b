// Package envd is what E2B's clients say to the agent in a sandbox, as Connect's and Protocol Buffers' generators make it from the two .proto files beside it. Buf 1.75,
// protoc-gen-go 1.36 and protoc-gen-connect-go 1.21 made it, which have to be on the PATH to make it anew.
package envd

//go:generate buf generate
