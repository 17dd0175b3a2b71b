package program

import _ "embed"

//go:embed guest_amd64.gz
var compressed string

//go:embed guest_amd64.id
var id string
