package guest

const (
	architecture = 0xc000003e // AUDIT_ARCH_X86_64
	numberSetns  = 308
	numberClone3 = 435
)
