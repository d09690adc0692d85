// Builds src/sabir/viewing/page from these sources: `npm run build`, or `make web` at the root of the repository.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "sabir", "viewing", "page");
const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
};

const worker = await build({ ...options, entryPoints: ["src/layout-worker.ts"] });
const page = await build({
  ...options,
  entryPoints: ["src/main.ts"],
  define: { WORKER_SOURCE: JSON.stringify(worker.outputFiles[0].text) },
});
const style = await build({ ...options, entryPoints: ["src/page.css"] });

/** The packages whose files are in a bundle. */
function packagesOf(...builds) {
  const found = new Set();
  for (const { metafile } of builds) {
    for (const file of Object.keys(metafile.inputs)) {
      const [, name] = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/u.exec(file) ?? [];
      if (name) found.add(name);
    }
  }
  return [...found].sort();
}

/** The licences of packages, with those that a package bundles itself. */
function licencesOf(names) {
  return names.map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const texts = readdirSync(folder)
      .filter((file) => /^(licen[cs]e|notice)/iu.test(file))
      .sort()
      .map((file) => readFileSync(join(folder, file), "utf8").trim());
    if (texts.length === 0) throw new Error(`${name} has no file with its licence`);
    return `${name} ${version} (${license})\n\n${texts.join("\n\n")}\n`;
  });
}

/** One hash of all sources: a test compares it, so that a bundle that is not current is noticed without npm. */
function sourcesHash() {
  const hash = createHash("sha256");
  const files = [
    "build.mjs",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    ...readdirSync(join(here, "src")).map((f) => `src/${f}`),
  ];
  for (const file of files.sort())
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(here, file)))
      .update("\0");
  return hash.digest("hex");
}

const packages = packagesOf(worker, page);
// an inline script would end at this text; the page has the script as it is here
const script = page.outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const outputs = {
  "page.js": script,
  "page.css": style.outputFiles[0].text,
  "LICENCES.txt": licencesOf(packages).join(`\n${"-".repeat(80)}\n\n`),
  "sources.sha256": `${sourcesHash()}\n`,
};
for (const [name, text] of Object.entries(outputs)) writeFileSync(join(target, name), `${text.trimEnd()}\n`);
