# What the host's commands share; they read it with `.`.

# A process that ended stays a zombie where nobody collects it.
lives() {
    { read -r line < "/proc/$1/stat"; } 2> /dev/null || return 1
    case ${line##*) } in [ZX]*) return 1 ;; esac
}

# Any answer in HTTP will do: it shows that the way there is open.
answers() {
    bash -c 'exec 3<> "/dev/tcp/$0/$1" || exit 1
        printf "GET / HTTP/1.0\r\n\r\n" >&3
        read -r -t 5 word _ <&3
        case $word in HTTP/*) exit 0 ;; esac
        exit 1' "$1" "$2" 2> /dev/null
}
