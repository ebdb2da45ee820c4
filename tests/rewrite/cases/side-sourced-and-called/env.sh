export MBS=4
export GBS=$((MBS * 4))
