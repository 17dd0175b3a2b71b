/** How many files of what is dropped are taken. */
export const mostFiles = 100
const mostLooked = 2000

const filesOf = (entry: FileSystemFileEntry) =>
  new Promise<File[]>((done) =>
    entry.file(
      (file) => done([file]),
      () => done([]),
    ),
  )

/** A folder gives its content in parts, until one is empty. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader()
  const all: FileSystemEntry[] = []
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((done) => reader.readEntries(done, () => done([])))
    all.push(...part)
    if (!part.length || all.length > mostLooked) return all
  }
}

// Such as .git and .DS_Store: nobody means them by dropping a folder.
const hidden = (name: string) => name.startsWith('.') || name === '__MACOSX'

/** The files of entries, folder by folder, as many as are taken. */
export async function filesIn(entries: readonly FileSystemEntry[]): Promise<{ files: File[]; cut: boolean }> {
  const files: File[] = []
  const left = [...entries]
  let looked = 0
  for (let entry = left.shift(); entry; entry = left.shift()) {
    if (files.length >= mostFiles || looked++ > mostLooked) return { files, cut: true }
    if (entry.isFile) files.push(...(await filesOf(entry as FileSystemFileEntry)))
    else if (entry.isDirectory)
      left.push(...(await entriesOf(entry as FileSystemDirectoryEntry)).filter((e) => !hidden(e.name)))
  }
  return { files, cut: false }
}

/** What was dropped. The entries have to be taken before the event is over. */
export async function dropped(transfer: DataTransfer): Promise<{ files: File[]; cut: boolean }> {
  const entries = [...transfer.items].flatMap((i) => (i.kind === 'file' ? (i.webkitGetAsEntry?.() ?? []) : []))
  const plain = [...transfer.files]
  if (entries.some((e) => e.isDirectory)) return filesIn(entries)
  return { files: plain.slice(0, mostFiles), cut: plain.length > mostFiles }
}

/** Files of the clipboard: a picture there is named image.png, whichever it is. */
export const pastedFiles = (files: Iterable<File>, name: string): File[] =>
  [...files].map((f) =>
    /^image\.\w+$/.test(f.name) && f.type.startsWith('image/')
      ? new File([f], `${name}.${f.name.split('.').pop()}`, { type: f.type })
      : f,
  )
