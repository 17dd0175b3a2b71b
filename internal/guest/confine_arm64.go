package guest

const (
	architecture = 0xc00000b7 // AUDIT_ARCH_AARCH64
	numberSetns  = 268
	numberClone3 = 435
)
