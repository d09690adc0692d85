import js from "@eslint/js";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["node_modules"] },
  js.configs.recommended,
  {
    files: ["src/**/*.ts"],
    extends: [...ts.configs.strictTypeChecked, ...ts.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: { eqeqeq: "error", "no-console": "error" },
  },
  {
    // what runs in Node, and in the page where a test asks it
    files: ["**/*.mjs"],
    languageOptions: {
      globals: Object.fromEntries(
        [
          "URL",
          "process",
          "document",
          "window",
          "Event",
          "requestAnimationFrame",
          "WheelEvent",
          "getComputedStyle",
          "axe",
        ].map((name) => [name, "readonly"]),
      ),
    },
  },
);
