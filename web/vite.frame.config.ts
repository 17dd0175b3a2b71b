import { copyFileSync, mkdirSync } from 'node:fs'
import { defineConfig } from 'vite'

// What /frame loads: classic scripts, each complete in itself, because the frame's origin is opaque. `--mode vega` and `--mode widgets` build the others.
const parts: Record<string, string> = { vega: 'coveVegaBundle', widgets: 'coveWidgetsBundle' }

export default defineConfig(({ mode }) => ({
  base: './',
  publicDir: false as const,
  define: { 'process.env.NODE_ENV': '"production"' },
  plugins: [
    {
      name: 'beside',
      closeBundle() {
        if (mode in parts) return
        mkdirSync('dist/assets/frame', { recursive: true })
        copyFileSync('frame.html', 'dist/frame.html')
        for (const part of ['cartesian', 'strict']) {
          copyFileSync(
            `node_modules/plotly.js-${part}-dist-min/plotly-${part}.min.js`,
            `dist/assets/frame/plotly-${part}.js`,
          )
        }
        copyFileSync('node_modules/plotly.js-cartesian-dist-min/LICENSE', 'dist/assets/frame/licenses-plotly.txt')
      },
    },
  ],
  build: {
    target: 'es2022',
    outDir: 'dist/assets/frame',
    emptyOutDir: false,
    reportCompressedSize: false,
    license: { fileName: `licenses-${mode in parts ? mode : 'frame'}.txt` },
    lib: {
      entry: `src/frame/${mode in parts ? mode : 'main'}.ts`,
      name: parts[mode] ?? 'coveFrame',
      formats: ['iife' as const],
      fileName: () => (mode in parts ? `${mode}.js` : 'frame.js'),
    },
  },
}))
