import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

// The address of a running `cove serve`, which answers everything but the page's own files in `make web-dev`.
const server = process.env.COVE_SERVER ?? 'http://127.0.0.1:8700'

// The built page is committed: names without hashes, so that a change of one part changes one file. The server puts the hash of all of it into the addresses.
// Which styles win is said by the order of layers, and that by what comes first: of one file made of all parts, no part of the source does.
const layersFirst: Plugin = {
  name: 'layers-first',
  enforce: 'post',
  generateBundle(_, bundle) {
    for (const file of Object.values(bundle))
      if (file.type === 'asset' && file.fileName.endsWith('.css'))
        file.source = `@layer tokens, base, parts;${file.source}`
  },
}

export default defineConfig({
  base: './',
  plugins: [react(), layersFirst],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: false,
    license: { fileName: 'licenses.txt' }, // of the packages in the page, for THIRD_PARTY_NOTICES
    rollupOptions: {
      output: {
        entryFileNames: 'assets/[name].js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: 'assets/[name][extname]',
      },
    },
  },
  worker: {
    format: 'es',
    rollupOptions: { output: { entryFileNames: 'assets/[name].js', chunkFileNames: 'assets/[name].js' } },
  },
  // Frames of outputs have a policy of their own, which only the server sends: a built page has to be there.
  server: { proxy: { '/api': server, '^/frame([?]|$)': server, '/assets/frame': server } },
  // A loaded machine takes its time; only a hang is an error.
  test: { environment: 'jsdom', include: ['src/**/*.test.{ts,tsx}'], testTimeout: 300_000, hookTimeout: 300_000 },
} as Parameters<typeof defineConfig>[0])
