# SPDX-License-Identifier: Apache-2.0
"""The parsers of the frameworks: what each takes, what wins, what it refuses and with which words.

argparse itself is used where the framework uses it, so that abbreviations, missing values and
"unrecognized arguments" are the real ones."""

import argparse
import re
import sys


class Refused(Exception):
    """The framework would not start. `lines` is what it prints, `code` its exit code."""

    def __init__(self, lines, code=1):
        super().__init__(lines)
        self.lines = [lines] if isinstance(lines, str) else lines
        self.code = code


def _bool(text):
    low = text.lower()
    if low in ('yes', 'true', 't', 'y', '1'):
        return True
    if low in ('no', 'false', 'f', 'n', '0'):
        return False
    raise argparse.ArgumentTypeError(
        'Truthy value expected: got %s but expected one of yes/no, true/false, t/f, y/n, 1/0 '
        '(case insensitive).' % text
    )


class Parser(argparse.ArgumentParser):
    """Exit code and text as argparse; a caller sees Refused instead of SystemExit."""

    def error(self, message):
        raise Refused(
            ['usage: %s [-h] [options]' % self.prog, '%s: error: %s' % (self.prog, message)], 2
        )


def flags(prog, spec, abbrev=False, both=False):
    """An argparse parser from a table "name:kind=default{a,b}" separated by white space.

    Kinds: i f s, t (store_true), b (--x / --no-x), h (a boolean as Hugging Face reads it),
    nDEST (store_false); behind i or s a nargs + * or a number. `both`: --a-b and --a_b."""
    parser = Parser(prog=prog, allow_abbrev=abbrev, add_help=False)
    for item in spec.split():
        name, kind = item.split(':', 1)
        kind, _, default = kind.partition('=')
        choices = None
        if '{' in kind + default:
            kind, default = (t.partition('{')[0] for t in (kind, default))
            choices = item[item.index('{') + 1 : -1].split(',')
        names = ['--' + name]
        if both:
            names = sorted({'--' + name.replace('-', '_'), '--' + name.replace('_', '-')})
        dest = name.replace('-', '_')
        kw = {'dest': dest}
        if kind == 't':
            kw.update(action='store_true')
        elif kind.startswith('n'):
            kw.update(action='store_false', dest=kind[1:], default=True)
        elif kind == 'b':
            kw.update(
                action=argparse.BooleanOptionalAction,
                default=None if not default else default == 'true',
            )
        elif kind == 'h':
            kw.update(type=_bool, nargs='?', const=True, default=default == 'true')
            if default == 'true':
                off = ['--no_' + dest] + (['--no-' + dest.replace('_', '-')] if both else [])
                parser.add_argument(
                    *sorted(set(off)), action='store_false', dest=dest, default=True
                )
        else:
            number = {'i': int, 'f': float, 's': str}[kind[0]]
            kw.update(type=number, default=number(default) if default else None)
            if kind[1:]:
                kw.update(nargs=kind[1:] if kind[1:] in '+*?' else int(kind[1:]))
            if choices:
                kw.update(choices=[number(c) for c in choices])
        parser.add_argument(*names, **kw)
    return parser


# --- hydra and OmegaConf ------------------------------------------------------------------------


def load_yaml(path):
    import yaml

    loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
    try:
        with open(path) as f:
            return yaml.load(f, Loader=loader) or {}
    except OSError as e:
        raise Refused("FileNotFoundError: [Errno 2] No such file or directory: '%s'" % path) from e
    except yaml.YAMLError as e:
        raise Refused(['Traceback (most recent call last):', 'yaml.scanner.ScannerError: %s' % e])


def yaml_value(text):
    import yaml

    if text == '':
        return ''
    if re.fullmatch(r'[-+]?\d+(\.\d*)?[eE][-+]?\d+', text):
        return float(text)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def get(tree, path, default=None):
    for key in path.split('.'):
        if isinstance(tree, list) and key.isdigit() and int(key) < len(tree):
            tree = tree[int(key)]
        elif isinstance(tree, dict) and key in tree:
            tree = tree[key]
        else:
            return default
    return tree


def has(tree, path):
    marker = object()
    return get(tree, path, marker) is not marker


def put(tree, path, value):
    keys = path.split('.')
    for key in keys[:-1]:
        if isinstance(tree, list):
            tree = tree[int(key)]
        else:
            if not isinstance(tree.get(key), (dict, list)):
                tree[key] = {}
            tree = tree[key]
    if isinstance(tree, list):
        tree[int(keys[-1])] = value
    else:
        tree[keys[-1]] = value


FULL_ERROR = ['', 'Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.']


def hydra(tree, overrides, prog):
    """Applies override by override as hydra does on a struct configuration."""
    for text in overrides:
        if text.startswith('--'):
            raise Refused(
                [
                    'usage: %s [--help] [--config-path] [--config-name] [overrides ...]' % prog,
                    '%s: error: unrecognized arguments: %s' % (prog, text),
                ],
                2,
            )
        m = re.match(r'(\+\+|\+|~)?([A-Za-z_][\w./@-]*)(?:=(.*))?$', text, re.S)
        if not m or (m.group(3) is None and m.group(1) != '~'):
            raise Refused(
                [
                    (
                        "missing EQUAL at '<EOF>'"
                        if m
                        else "no viable alternative at input '%s'" % text
                    ),
                    'See https://hydra.cc/docs/1.2/advanced/override_grammar/basic ' 'for details',
                ]
                + FULL_ERROR
            )
        sign, key, value = m.groups()
        known = has(tree, key)
        if (
            value is not None
            and re.search(r'(?<!\\)[(){}]', value)
            and not re.match(r'''["'\[{]|\$\{''', value)
        ):
            raise Refused(
                [
                    "no viable alternative at input '%s'" % value,
                    'See https://hydra.cc/docs/1.2/advanced/override_grammar/basic for details',
                ]
                + FULL_ERROR
            )
        if sign == '~':
            if not known:
                raise Refused(
                    ["Could not delete from config. '%s' does not exist." % key] + FULL_ERROR
                )
            parent = get(tree, key.rpartition('.')[0]) if '.' in key else tree
            parent.pop(key.rpartition('.')[2])
            continue
        if not sign and not known:
            leaf = key.rpartition('.')[2]
            raise Refused(
                [
                    "Could not override '%s'." % key,
                    'To append to your config use +%s=%s' % (key, value),
                    "Key '%s' is not in struct" % leaf,
                    '    full_key: ' + key,
                    '    object_type=dict',
                ]
                + FULL_ERROR
            )
        if sign == '+' and known:
            raise Refused(
                [
                    "Could not append to config. An item is already at '%s'." % key,
                    "Either remove + prefix: '%s=%s'" % (key, value),
                    "Or add a second + to add or override '%s': '++%s=%s'" % (key, key, value),
                ]
                + FULL_ERROR
            )
        if len(value) > 1 and value[0] == value[-1] and value[0] in '\'"':
            value = value[1:-1]
        else:
            value = yaml_value(value)
        put(tree, key, value)
    return tree


def resolve(tree):
    """Puts values in place of ${a.b}, ${mul:a,b} and ${oc.select:a,b}."""

    def one(value, depth=0):
        if not isinstance(value, str) or '${' not in value or depth > 12:
            return value
        m = re.fullmatch(r'\$\{([^{}]*(?:\$\{[^{}]*\}[^{}]*)*)\}', value)
        if not m:
            return re.sub(r'\$\{([^{}]*)\}', lambda k: str(one(k.group(0), depth + 1)), value)
        body = m.group(1)
        kind, _, args = body.partition(':')
        if args and kind in ('mul', 'oc.select', 'oc.env'):
            parts = [one(p.strip(), depth + 1) for p in re.split(r',(?![^{]*\})', args)]
            if kind == 'mul':
                return int(parts[0]) * int(parts[1])
            found = get(tree, parts[0]) if kind == 'oc.select' else None
            return (
                one(found, depth + 1)
                if found is not None
                else (
                    yaml_value(parts[1]) if len(parts) > 1 and isinstance(parts[1], str) else None
                )
            )
        if body.startswith('.'):
            return None
        return one(get(tree, body), depth + 1)

    def walk(node):
        if isinstance(node, dict):
            return {k: walk(v) for k, v in node.items()}
        if isinstance(node, list):
            return [walk(v) for v in node]
        return one(node)

    return walk(tree)


def flat(tree, prefix=''):
    out = {}
    for k, v in tree.items():
        if isinstance(v, dict) and v:
            out.update(flat(v, prefix + str(k) + '.'))
        else:
            out[prefix + str(k)] = v
    return out


def value_error(path, items, text):
    from .text import traceback

    return Refused(traceback([(path,) + i for i in items], 'ValueError: ' + text))


def warn(text):
    sys.stderr.write(text + '\n')
