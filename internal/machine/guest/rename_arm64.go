package guest

const sysRenameat2 = 276
