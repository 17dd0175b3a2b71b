package program

import _ "embed"

//go:embed guest_arm64.gz
var compressed string

//go:embed guest_arm64.id
var id string
